import { Fragment } from 'preact'
import { DeliveriesOfFinding } from '../alerts/deliveries/of-finding.tsx'
import { type FindingDetails, listFindingTraces, listReleases, readFinding } from '../api/generated/client.ts'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, place } from '../state/router.ts'
import { ANY_TIME, rangeKey, timesOf } from '../state/time-range.ts'
import { Bars } from '../ui/bars.tsx'
import { Filters } from '../ui/filters.tsx'
import { Shown } from '../ui/states.tsx'
import { Fact, Facts, Time, Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'
import { Grouping } from './grouping.tsx'
import { Merges } from './merges.tsx'
import { Neighbours } from './neighbours.tsx'
import { Occurrences } from './occurrences.tsx'
import { Stack } from './stack.tsx'
import { Status } from './status.tsx'
import { messageOf, Place, titleOf } from './title.tsx'
import { Values } from './values.tsx'
import { Work } from './work.tsx'

const TRACES_SHOWN = 20

/** A finding: its stack, when and where it occurred, and the traces and sessions of it. */
export function FindingPage({ id }: { readonly id: string }) {
  const { query } = place.value
  const times = timesOf(query, { otherwise: ANY_TIME })
  const loaded = useLoad(`finding ${id} ${rangeKey(query)}`, signal =>
    readFinding({ findingId: id, times: 'occurred', ...times }, { signal }),
  )
  return (
    <>
      {loaded.value === undefined && <Title text="Finding" />}
      <Shown loaded={loaded} what="the finding">
        {({ finding }) => (
          <article>
            <Neighbours id={id} />
            <Title text={titleOf(finding)} />
            <p class="statuses">
              <Status finding={finding} since={times.$from} />
            </p>
            <p class="message-whole">{messageOf(finding)}</p>
            <p class="quiet">
              <Place finding={finding} />
            </p>
            <FindingFacts finding={finding} />
            <Filters>
              <TimeFilter label="Occurrences of" otherwise={ANY_TIME} />
            </Filters>
            <Bars {...finding.occurrences} noun="occurrence" />
            {finding.occurrences.times === 'received' && (
              <p class="quiet">
                These are too many to be counted by when they occurred: each is at the time at which it was received.
              </p>
            )}
            <section>
              <h2>Stack</h2>
              <Stack finding={finding} />
              <Grouping finding={finding} />
            </section>
            <Values id={id} times={times} />
            <div class="columns">
              <Work finding={finding} changed={loaded.again} />
              <Occurrences id={id} times={times} />
              <Traces finding={finding} />
              <DeliveriesOfFinding id={id} />
              <Merges finding={finding} changed={loaded.again} />
            </div>
          </article>
        )}
      </Shown>
    </>
  )
}

function FindingFacts({ finding }: { readonly finding: FindingDetails }) {
  const { seenIn } = finding
  const versions = seenIn.serviceVersions.filter(version => version !== '')
  return (
    <Facts>
      <Fact name="Occurrences">{finding.occurrenceCount.toLocaleString()}</Fact>
      <Fact name="Last occurred">
        <Time iso={finding.lastSeenAt} receivedAt={finding.lastReceivedAt} />
      </Fact>
      <Fact name="First occurred">
        <Time iso={finding.firstSeenAt} receivedAt={finding.firstReceivedAt} />
      </Fact>
      <Fact name="Services">{seenIn.serviceNames.join(', ') || '–'}</Fact>
      <Fact name="Releases">
        <Releases finding={finding} versions={versions} />
      </Fact>
      {finding.regressedIn !== undefined && (
        <Fact name="Regressed in">{finding.regressedIn.join(', ') || 'occurrences without a version'}</Fact>
      )}
      <Fact name="Traces">{about(seenIn.approximateTraceCount)}</Fact>
    </Facts>
  )
}

interface ReleasesProps {
  readonly finding: FindingDetails
  readonly versions: readonly string[]
}

/** The versions in which it occurred. One with a release leads to its source maps; versions of servers often have none. */
function Releases({ finding: { surfaceId }, versions }: ReleasesProps) {
  const key = versions.length > 0 ? JSON.stringify(['releases of', surfaceId, ...versions]) : undefined
  const loaded = useLoad(key, async signal => {
    const pages = await Promise.all(
      versions.map(version => listReleases({ surface: surfaceId, version, limit: 1 }, { signal })),
    )
    return pages.map(({ releases: [release] }) => release?.slug)
  })
  if (versions.length === 0) return <>–</>
  return (
    <>
      {versions.map((version, i) => {
        const slug = loaded.value?.[i]
        return (
          <Fragment key={version}>
            {i > 0 && ', '}
            {slug === undefined ? (
              version
            ) : (
              <a href={addressOf(`releases/${encodeURIComponent(slug)}`)} title="Release and source maps">
                {version}
              </a>
            )}
          </Fragment>
        )
      })}
    </>
  )
}

/** Small counts are exact. */
function about(count: number): string {
  return count < 100 ? String(count) : `about ${count.toLocaleString()}`
}

/** The traces of it. Each link leads to the span in which it occurred, which the page of the trace looks up if need be. */
function Traces({ finding }: { readonly finding: FindingDetails }) {
  const { id, lastOccurrences } = finding
  const spanIn = (traceId: string) => lastOccurrences.find(occurrence => occurrence.traceId === traceId)?.spanId
  const linkOf = (traceId: string) => {
    const span = spanIn(traceId)
    return addressOf(`traces/${traceId}`, span === undefined ? { finding: id } : { span })
  }
  const loaded = useLoad(`traces of ${id}`, signal =>
    listFindingTraces({ findingId: id, limit: TRACES_SHOWN }, { signal }),
  )
  return (
    <section>
      <h2>Traces</h2>
      <Shown loaded={loaded} what="traces">
        {({ traces, nextCursor }) => (
          <>
            {traces.length === 0 && <p class="quiet">No occurrence names a trace.</p>}
            <ul class="entries">
              {traces.map(trace => (
                <li key={trace.id}>
                  <a data-row class="mono" href={linkOf(trace.traceId)}>
                    {trace.traceId}
                  </a>
                  <div class="quiet">
                    {counted(trace.occurrenceCount, 'occurrence')}, last <Time iso={trace.lastSeenAt} />
                  </div>
                </li>
              ))}
            </ul>
            {nextCursor !== null && <p class="quiet">These are the newest {TRACES_SHOWN}. There are more.</p>}
          </>
        )}
      </Shown>
    </section>
  )
}
