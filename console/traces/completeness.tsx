import { counted } from '../state/format.ts'
import { Time } from '../ui/text.tsx'
import type { WaterfallModel } from './waterfall-model.ts'

type Cause = WaterfallModel['head']['missingParents'][number]['cause']

/** Each cause for people: what is known, and what could be done. */
const CAUSES: Readonly<Record<Cause, string>> = {
  in_flight: 'Accepted requests are not stored yet. They appear by themselves.',
  dead_lettered: 'Requests of this workspace could not be stored at that time, and are kept as dead letters.',
  refused: 'Requests of this workspace were refused at that time, and their clients did not repeat them.',
  expired:
    'The trace begins where the retention of this workspace ends, or spans of its time have left with a shorter one.',
  erased: 'Spans of its time were erased with a person or a session. They may have been of another trace.',
  dropped: 'Rules of this workspace have dropped spans of the trace before they were stored.',
  cut: 'The trace has more than 1,000,000 spans. The first of them are shown.',
  not_received_from_other_service:
    'Nothing was lost here. The parent is a span of another service, which has not sent it: it was sampled out there, or that service does not export here.',
  not_received_from_this_service:
    'Nothing was lost here. The same service has not sent the parent: the span has not ended, or the process ended before its export.',
  unknown: 'Nothing was lost here, and no span states which service the parent is of.',
}

/** Counts what was lost. */
const LOST: Readonly<Record<Loss['cause'], (count: number) => string>> = {
  dead_lettered: count => `${counted(count, 'request')} kept as dead letters`,
  refused: count => `${counted(count, 'request')} refused`,
  expired: count => `${counted(count, 'span')} expired`,
  erased: count => `${counted(count, 'span')} erased`,
  dropped: count => `${counted(count, 'span')} dropped`,
}

const STATES = {
  complete: { text: 'Complete', tag: 'tag good' },
  no_gaps: { text: 'No gaps', tag: 'tag' },
  incomplete: { text: 'Spans are missing', tag: 'tag doubt' },
} as const

/** States how complete a trace is, and why spans are missing. A missing parent leads to its first child. */
export function CompletenessNote({
  model,
  onShow,
}: {
  readonly model: WaterfallModel
  readonly onShow: (span: number) => void
}) {
  const { completeness, missingParents, danglingParentCount, truncated } = model.head
  const { text, tag } = STATES[completeness.state]
  const causes = [...new Set([...completeness.reasons, ...missingParents.map(({ cause }) => cause)])]
  return (
    <details class="completeness" open={truncated}>
      <summary>
        <span class={tag}>{text}</span>
        {danglingParentCount > 0 && (
          <span class="quiet">{counted(danglingParentCount, 'span')} without a parent that is retained</span>
        )}
        {completeness.settledBefore && (
          <span class="quiet">
            everything accepted before <Time iso={completeness.settledBefore} exact /> is included
          </span>
        )}
      </summary>
      {causes.length === 0 && <p>No parent is missing, and no request was lost at the time of the trace.</p>}
      <ul class="entries">
        {causes.map(cause => {
          const parents = missingParents.filter(parent => parent.cause === cause)
          return (
            <li key={cause}>
              {CAUSES[cause]}
              {parents.slice(0, 5).map(parent => (
                <div key={parent.spanId}>
                  <button type="button" class="plain" onClick={() => onShow(parent.firstChild)}>
                    Go to the first of {counted(parent.childCount, 'child span')} of <code>{parent.spanId}</code>
                  </button>
                </div>
              ))}
              {parents.length > 5 && <div class="quiet">and {counted(parents.length - 5, 'other parent')}</div>}
            </li>
          )
        })}
      </ul>
      <Losses losses={completeness.losses} />
    </details>
  )
}

type Loss = WaterfallModel['head']['completeness']['losses'][number]

/** Lists what was lost at the time of the trace, in the order of the API: that of its surfaces within a minute first. */
function Losses({ losses }: { readonly losses: readonly Loss[] }) {
  if (losses.length === 0) return null
  return (
    <>
      <p>Lost at that time, of this trace or of others:</p>
      <ul class="entries">
        {losses.map(({ cause, surfaceId, isNear, rule, count, receivedFrom, receivedTo }) => (
          <li key={`${cause} ${surfaceId} ${isNear} ${rule}`}>
            {LOST[cause](count)}
            {rule !== undefined && ` by your rule ${rule}`} of <code>{surfaceId}</code>,{' '}
            <Time iso={receivedFrom} exact />
            {receivedTo !== receivedFrom && (
              <>
                {' to '}
                <Time iso={receivedTo} exact />
              </>
            )}
            {isNear && <span class="quiet">: a surface of this trace, within a minute of its spans</span>}
          </li>
        ))}
      </ul>
    </>
  )
}
