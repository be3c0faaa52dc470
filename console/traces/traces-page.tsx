import { type FoundTrace, listTraces } from '../api/generated/client.ts'
import { NothingFound } from '../onboarding/nothing-found.tsx'
import { counted, formatNanos, isoOfNanos } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place, present } from '../state/router.ts'
import { timesOf } from '../state/time-range.ts'
import { whereOf, whereText } from '../state/where.ts'
import { Conditions } from '../ui/conditions.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { choiceOf, type FilterRules, MILLISECONDS, validQuery } from '../ui/filter-rules.ts'
import { ChoiceFilter, FINDING_OPTIONS, Filters, Pages, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { TimeAndAge, Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'

const PAGE_SIZE = 50
const STATUSES = [
  ['', 'Any status'],
  ['ERROR', 'With an error'],
] as const

const RULES: FilterRules = {
  minDurationMs: MILLISECONDS,
  hasFinding: choiceOf(FINDING_OPTIONS),
}

const COLUMNS: readonly Column<FoundTrace>[] = [
  {
    head: 'Trace',
    cell: ({ traceId, firstSpan, services, serviceCount }) => (
      <a data-row href={addressOf(`traces/${traceId}`)}>
        <span class="type">
          {firstSpan.name || '(no name)'} <StatusCode code={firstSpan.httpStatusCode} />
        </span>
        <span class="message">
          {firstSpan.httpRoute && !firstSpan.name.includes(firstSpan.httpRoute) && `${firstSpan.httpRoute} · `}
          {services.join(', ')}
          {serviceCount > services.length && ` and ${serviceCount - services.length} more`}
        </span>
      </a>
    ),
  },
  { head: 'Duration', isNumber: true, cell: ({ wallDurationMs }) => formatNanos(wallDurationMs * 1e6) },
  { head: 'Spans', isNumber: true, cell: ({ spanCount }) => spanCount.toLocaleString() },
  {
    head: 'Errors',
    isNumber: true,
    cell: ({ errorCount }) => (errorCount > 0 ? <span class="tag bad">{errorCount.toLocaleString()}</span> : '0'),
  },
  { head: 'Started', cell: ({ startedAtUnixNano }) => <TimeAndAge iso={isoOfNanos(startedAtUnixNano)} /> },
]

const CLIENT_ERROR = 400
const SERVER_ERROR = 500

function StatusCode({ code }: { readonly code: number | undefined }) {
  if (code === undefined) return null
  return <span class={code >= SERVER_ERROR ? 'tag bad' : code >= CLIENT_ERROR ? 'tag doubt' : 'tag'}>{code}</span>
}

/** The list of traces, newest first. */
export function TracesPage() {
  const query = validQuery(place.value.query, RULES)
  const loaded = useLoad(`traces ${query}`, signal => listTraces(parametersOf(query), { signal }))
  return (
    <>
      <Title text="Traces" />
      <Filters>
        <TextFilter name="name" label="Name of a span" type="search" placeholder="GET /cart" suggests="name" />
        <TextFilter name="service" label="Service" suggests="service" />
        <Conditions />
        <TextFilter name="session" label="Session" />
        <TextFilter name="minDurationMs" label="At least ms" rules={RULES} />
        <ChoiceFilter name="status" label="Status" options={STATUSES} isOpen />
        <ChoiceFilter name="hasFinding" label="Findings" options={FINDING_OPTIONS} />
        <TimeFilter label="Started" />
      </Filters>
      <Shown loaded={loaded} what="traces">
        {({ traces, nextCursor }) => (
          <>
            <DataTable
              caption="Traces, newest first"
              columns={COLUMNS}
              rows={traces}
              keyOf={({ traceId }) => traceId}
              empty={<Empty hasMore={nextCursor !== null} />}
            />
            <p class="quiet">{counted(traces.length, 'trace')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

function Empty({ hasMore }: { readonly hasMore: boolean }) {
  if (hasMore) return <Notice title="None of the newest traces matches" text="The next page looks at older ones." />
  return <NothingFound kind="traces" noun="trace" />
}

function parametersOf(query: URLSearchParams): Parameters<typeof listTraces>[0] {
  const { minDurationMs, ...texts } = given(
    query,
    'name',
    'service',
    'session',
    'status',
    'hasFinding',
    'cursor',
    'minDurationMs',
  )
  const numbers = present({ minDurationMs: minDurationMs === undefined ? undefined : Number(minDurationMs) })
  const where = present({ where: whereText(whereOf(query)) })
  return { limit: PAGE_SIZE, ...texts, ...where, ...numbers, ...timesOf(query) } as Parameters<typeof listTraces>[0]
}
