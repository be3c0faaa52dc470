import { type ListedOccurrence, listFindingOccurrences } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, place, present } from '../state/router.ts'
import { rangeKey, type timesOf } from '../state/time-range.ts'
import { Pages } from '../ui/filters.tsx'
import { Shown } from '../ui/states.tsx'
import { SessionLink, Time } from '../ui/text.tsx'

const PAGE_SIZE = 20

/** The occurrences of a finding in a time, last received first. */
export function Occurrences({ id, times }: { readonly id: string; readonly times: ReturnType<typeof timesOf> }) {
  const { query } = place.value
  const cursor = query.get('cursor') ?? undefined
  const loaded = useLoad(`occurrences of ${id} ${rangeKey(query)} ${cursor}`, signal =>
    listFindingOccurrences({ findingId: id, limit: PAGE_SIZE, ...times, ...present({ cursor }) }, { signal }),
  )
  return (
    <section>
      <h2>Occurrences</h2>
      <Shown loaded={loaded} what="occurrences">
        {({ occurrences, nextCursor }) => (
          <>
            {occurrences.length === 0 && <p class="quiet">None was received in this time.</p>}
            <ul class="entries">
              {occurrences.map((occurrence, i) => (
                <li key={i}>
                  <Occurrence occurrence={occurrence} />
                </li>
              ))}
            </ul>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}

function Occurrence({ occurrence }: { readonly occurrence: ListedOccurrence }) {
  const { occurredAt, receivedAt, serviceVersion, releaseSlug, sessionId, recordedAt, traceId, spanId, person } =
    occurrence
  const places = [occurrence.route, occurrence.browser, occurrence.system, occurrence.environment, occurrence.host]
  return (
    <>
      <div class="entry-head">
        <Time iso={occurredAt} receivedAt={receivedAt} />
        {serviceVersion && releaseSlug === undefined && <span class="tag">{serviceVersion}</span>}
        {serviceVersion && releaseSlug !== undefined && (
          <a class="tag" href={addressOf(`releases/${encodeURIComponent(releaseSlug)}`)}>
            {serviceVersion}
          </a>
        )}
        {person && <a href={addressOf('sessions', { user: person })}>{person}</a>}
        {sessionId && (
          <SessionLink id={sessionId} at={recordedAt}>
            {recordedAt === undefined ? 'Session' : 'Recording'}
          </SessionLink>
        )}
        {traceId && <a href={addressOf(`traces/${traceId}`, { span: spanId })}>Trace</a>}
      </div>
      <div class="message">{occurrence.message}</div>
      <div class="quiet">{places.filter(Boolean).join(', ')}</div>
    </>
  )
}
