import { listLogs, readLogHistogram } from '../api/generated/client.ts'
import { NothingFound } from '../onboarding/nothing-found.tsx'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { changeQuery, given, place, present } from '../state/router.ts'
import { ANY_TIME, LAST_DAY, timesOf } from '../state/time-range.ts'
import { whereOf, whereText } from '../state/where.ts'
import { Bars } from '../ui/bars.tsx'
import { Conditions } from '../ui/conditions.tsx'
import { choiceOf, type FilterRules, SPAN_ID, TRACE_ID, validQuery, WORDS } from '../ui/filter-rules.ts'
import { ChoiceFilter, Filters, Pages, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'
import { LiveTail, type TailedLogs } from './live-tail.tsx'
import { LogList } from './log-list.tsx'

const PAGE_SIZE = 100
const SEVERITIES = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const

const SEVERITY_OPTIONS = [
  ['', 'Any'] as const,
  ...SEVERITIES.map(severity => [severity, `${severity} or higher`] as const),
]
const RULES: FilterRules = {
  q: WORDS,
  trace: TRACE_ID,
  span: SPAN_ID,
  severity: choiceOf(SEVERITY_OPTIONS),
}

type LogQuery = Omit<Parameters<typeof listLogs>[0], 'limit' | 'cursor'>

/** The search of log records, newest first, with their number over time. */
export function LogsPage() {
  const query = validQuery(place.value.query, RULES)
  const filters = filtersOf(query)
  const cursor = query.get('cursor')
  const isLive = query.has('live')
  const loaded = useLoad(isLive ? undefined : `logs ${query}`, signal =>
    listLogs({ ...filters, limit: PAGE_SIZE, ...present({ cursor: cursor ?? undefined }) }, { signal }),
  )
  const withoutCursor = new URLSearchParams([...query].filter(([name]) => name !== 'cursor')).toString()
  return (
    <>
      <Title text="Logs" />
      <Filters>
        <TextFilter name="q" label="Words" type="search" placeholder="payment refused" rules={RULES} maxLength={200} />
        <TextFilter name="service" label="Service" suggests="service" />
        <ChoiceFilter name="severity" label="Severity" options={SEVERITY_OPTIONS} />
        <Conditions />
        <TextFilter name="trace" label="Trace" rules={RULES} />
        <TextFilter name="span" label="Span" rules={RULES} />
        <TextFilter name="session" label="Session" />
        <TimeFilter otherwise={usualRange(query)} />
      </Filters>
      <label class="check">
        <input
          type="checkbox"
          checked={isLive}
          onChange={event => changeQuery({ live: event.currentTarget.checked ? '1' : undefined })}
        />
        Live
      </label>
      {isLive ? (
        <LiveTail logs={conditionsOf(query)} />
      ) : (
        <>
          <Histogram key={withoutCursor} filters={filters} id={withoutCursor} />
          <Shown loaded={loaded} what="log records">
            {page => <LogsOfPage {...page} />}
          </Shown>
        </>
      )}
    </>
  )
}

function LogsOfPage({ logs, nextCursor }: Pick<Awaited<ReturnType<typeof listLogs>>, 'logs' | 'nextCursor'>) {
  return (
    <>
      {logs.length === 0 && <NoLogs hasMore={nextCursor !== null} />}
      <LogList logs={logs} />
      <p class="quiet">{counted(logs.length, 'record')} on this page</p>
      <Pages nextCursor={nextCursor} />
    </>
  )
}

function NoLogs({ hasMore }: { readonly hasMore: boolean }) {
  if (hasMore) return <Notice title="None of the newest records matches" text="The next page looks at older ones." />
  return <NothingFound kind="logs" noun="log record" otherwise={usualRange(place.value.query)} />
}

function Histogram({ filters, id }: { readonly filters: LogQuery; readonly id: string }) {
  const loaded = useLoad(`log histogram ${id}`, signal => readLogHistogram(filters, { signal }))
  const { value } = loaded
  // The list states the fault of the same search.
  if (value === undefined || value.total === 0) return null
  const steps = Object.values(value.counts)[0]?.length ?? 0
  const counts = Array.from({ length: steps }, (_, i) =>
    Object.values(value.counts).reduce((sum, ofSeverity) => sum + (ofSeverity[i] ?? 0), 0),
  )
  const parts = (['UNSPECIFIED', ...SEVERITIES] as const).map(name => ({
    name: name === 'UNSPECIFIED' ? 'without severity' : name,
    counts: value.counts[name] ?? [],
    class: `severity-${name.toLowerCase()}`,
  }))
  return <Bars counts={counts} from={value.startsAt} bucketSeconds={value.stepSeconds} noun="record" parts={parts} />
}

/** Returns the range unless another one is chosen: that of a trace is all of it. */
const usualRange = (query: URLSearchParams) => (query.has('trace') ? ANY_TIME : LAST_DAY)

/** Returns the conditions of an address, but for the time. */
function conditionsOf(query: URLSearchParams): TailedLogs {
  const texts = given(query, 'q', 'service', 'severity', 'trace', 'span', 'session')
  return { ...texts, ...present({ where: whereText(whereOf(query)) }) } as TailedLogs
}

function filtersOf(query: URLSearchParams): LogQuery {
  // Without a beginning, the API searches the last hour, and all records of a trace.
  const times = timesOf(query, { isBounded: !query.has('trace'), otherwise: usualRange(query) })
  return { ...conditionsOf(query), ...times }
}
