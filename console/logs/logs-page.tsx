import { type LogRecord, listLogs, readLogHistogram } from '../api/generated/client.ts'
import { NothingFound } from '../onboarding/nothing-found.tsx'
import { counted, formatTime } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, changeQuery, given, place, present } from '../state/router.ts'
import { ANY_TIME, LAST_DAY, timesOf } from '../state/time-range.ts'
import { whereOf, whereText } from '../state/where.ts'
import { AttributeTable, attributesOf } from '../ui/attributes.tsx'
import { Bars } from '../ui/bars.tsx'
import { Conditions } from '../ui/conditions.tsx'
import { choiceOf, type FilterRules, SPAN_ID, TRACE_ID, validQuery, WORDS } from '../ui/filter-rules.ts'
import { ChoiceFilter, Filters, Pages, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Copy, SessionLink, Time, Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'

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
  const loaded = useLoad(`logs ${query}`, signal =>
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
      <Histogram key={withoutCursor} filters={filters} id={withoutCursor} />
      <Shown loaded={loaded} what="log records">
        {({ logs, nextCursor }) => (
          <>
            {logs.length === 0 && <NoLogs hasMore={nextCursor !== null} />}
            <label class="check">
              <input
                type="checkbox"
                checked={query.has('wrap')}
                onChange={event =>
                  changeQuery({ wrap: event.currentTarget.checked ? '1' : undefined }, { replace: true })
                }
              />
              Whole lines
            </label>
            <ol class={query.has('wrap') ? 'logs wrapped' : 'logs'} style={`--time-width: ${timeWidth(logs)}ch`}>
              {logs.map((log, i) => (
                <LogEntry key={i} log={log} />
              ))}
            </ol>
            <p class="quiet">{counted(logs.length, 'record')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
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

function filtersOf(query: URLSearchParams): LogQuery {
  const texts = given(query, 'q', 'service', 'severity', 'trace', 'span', 'session')
  // Without a beginning, the API searches the last hour, and all records of a trace.
  const times = timesOf(query, { isBounded: !query.has('trace'), otherwise: usualRange(query) })
  return { ...texts, ...present({ where: whereText(whereOf(query)) }), ...times } as LogQuery
}

const TAGS: Readonly<Record<LogRecord['severity'], string>> = {
  UNSPECIFIED: 'tag',
  TRACE: 'tag',
  DEBUG: 'tag',
  INFO: 'tag',
  WARN: 'tag doubt',
  ERROR: 'tag bad',
  FATAL: 'tag bad',
}

/** Returns the characters of the longest time, so that rows of today and of other days have one column of times. */
function timeWidth(logs: readonly LogRecord[]): number {
  return Math.max(0, ...logs.map(({ timestamp }) => formatTime(timestamp, { isPrecise: true }).length))
}

/** Time before and after a record in which others are shown. */
const AROUND_MS = 30_000

/** Returns the query of the records of the same service around one. */
function around({ timestamp, serviceName }: LogRecord): Record<string, string> {
  const at = (ms: number) => new Date(Date.parse(timestamp) + ms).toISOString()
  return { service: serviceName, from: at(-AROUND_MS), to: at(AROUND_MS) }
}

/** A log record: its body, and on demand everything else that was received of it. */
function LogEntry({ log }: { readonly log: LogRecord }) {
  return (
    <li>
      <details>
        <summary data-row>
          <span class="log-time">
            <Time iso={log.timestamp} precise />
          </span>
          <span class={TAGS[log.severity]}>{log.severity === 'UNSPECIFIED' ? '–' : log.severity}</span>
          <span class="log-service">{log.serviceName || '–'}</span>
          <span class="log-body">{log.body || log.eventName || '(empty)'}</span>
        </summary>
        <pre class="log-whole">{log.body}</pre>
        {log.isCut && <p class="quiet">The record has more than 4 MiB, and is shown in part.</p>}
        <p class="panel-links">
          {log.traceId && <a href={addressOf(`traces/${log.traceId}`, { span: log.spanId })}>Trace</a>}
          {log.sessionId && <SessionLink id={log.sessionId}>Session</SessionLink>}
          <a href={addressOf('logs', around(log))}>Records around it</a>
          <Copy text={JSON.stringify(log, undefined, 2)} what="JSON" />
        </p>
        <AttributeTable attributes={log.attributes} filters="logs" />
        <AttributeTable attributes={attributesOf(log.resource.attributes)} />
      </details>
    </li>
  )
}
