import { listTraces } from '../api/generated/client.ts'
import { counted, formatNanos, isoOfNanos } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given, present } from '../state/parameters.ts'
import { addressOf, place } from '../state/router.ts'
import { ChoiceFilter, FINDING_OPTIONS, Filters, Pages, PERIOD_OPTIONS, startOf, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'

const PAGE_SIZE = 50
const STATUSES = [
  ['', 'Any status'],
  ['ERROR', 'With an error'],
] as const

/** The list of traces, newest first. */
export function TracesPage() {
  const { query } = place.value
  const loaded = useLoad(query.toString(), signal => listTraces(parametersOf(query), { signal }))
  return (
    <>
      <Title text="Traces" />
      <Filters>
        <TextFilter name="name" label="Name of a span" type="search" placeholder="GET /cart" />
        <TextFilter name="service" label="Service" />
        <TextFilter name="attribute" label="Attribute" placeholder="http.route=/cart" />
        <TextFilter name="session" label="Session" />
        <TextFilter name="minDurationMs" label="At least ms" />
        <ChoiceFilter name="status" label="Status" options={STATUSES} />
        <ChoiceFilter name="hasFinding" label="Findings" options={FINDING_OPTIONS} />
        <ChoiceFilter name="last" label="Started" options={[['', 'Any time'], ...PERIOD_OPTIONS]} />
      </Filters>
      <Shown loaded={loaded} what="traces">
        {({ traces, nextCursor }) => (
          <>
            {traces.length === 0 && <Empty isFiltered={query.size > 0} hasMore={nextCursor !== null} />}
            {traces.length > 0 && (
              <table class="list">
                <caption class="hidden">Traces, newest first</caption>
                <thead>
                  <tr>
                    <th scope="col">Trace</th>
                    <th scope="col" class="number">
                      Duration
                    </th>
                    <th scope="col" class="number">
                      Spans
                    </th>
                    <th scope="col" class="number">
                      Errors
                    </th>
                    <th scope="col">Started</th>
                  </tr>
                </thead>
                <tbody>
                  {traces.map(trace => (
                    <tr key={trace.traceId}>
                      <th scope="row">
                        <a data-row href={addressOf(`traces/${trace.traceId}`)}>
                          <span class="type">{trace.firstSpan.name || '(no name)'}</span>
                          <span class="message">
                            {trace.services.join(', ')}
                            {trace.serviceCount > trace.services.length &&
                              ` and ${trace.serviceCount - trace.services.length} more`}
                          </span>
                        </a>
                      </th>
                      <td data-label="Duration" class="number">
                        {formatNanos(trace.wallDurationMs * 1e6)}
                      </td>
                      <td data-label="Spans" class="number">
                        {trace.spanCount.toLocaleString()}
                      </td>
                      <td data-label="Errors" class="number">
                        {trace.errorCount > 0 ? <span class="tag bad">{trace.errorCount.toLocaleString()}</span> : '0'}
                      </td>
                      <td data-label="Started">
                        <Time iso={isoOfNanos(trace.startedAtUnixNano)} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            <p class="quiet">{counted(traces.length, 'trace')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

function Empty({ isFiltered, hasMore }: { readonly isFiltered: boolean; readonly hasMore: boolean }) {
  if (hasMore) return <Notice title="None of the newest traces matches" text="The next page looks at older ones." />
  if (isFiltered) return <Notice title="No trace matches" text="Widen the time, or clear a filter." />
  return <Notice title="No traces yet" text="A trace appears here a moment after its first span arrives." />
}

function parametersOf(query: URLSearchParams): Parameters<typeof listTraces>[0] {
  const { minDurationMs, ...texts } = given(
    query,
    'name',
    'service',
    'attribute',
    'session',
    'status',
    'hasFinding',
    'cursor',
    'minDurationMs',
  )
  const numbers = present({ minDurationMs: minDurationMs === undefined ? undefined : Number(minDurationMs) })
  const times = present({ $from: startOf(query.get('last')) })
  return { limit: PAGE_SIZE, ...texts, ...numbers, ...times } as Parameters<typeof listTraces>[0]
}
