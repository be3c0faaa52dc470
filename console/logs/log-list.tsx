import type { LogRecord } from '../api/generated/client.ts'
import { formatTime } from '../state/format.ts'
import { addressOf, changeQuery, place } from '../state/router.ts'
import { AttributeTable, attributesOf } from '../ui/attributes.tsx'
import { Copy, SessionLink, Time } from '../ui/text.tsx'

/** Log records, one a line, and whether lines are shown whole. */
export function LogList({ logs }: { readonly logs: readonly LogRecord[] }) {
  const { query } = place.value
  const isWrapped = query.has('wrap')
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={isWrapped}
          onChange={event => changeQuery({ wrap: event.currentTarget.checked ? '1' : undefined }, { replace: true })}
        />
        Whole lines
      </label>
      <ol class={isWrapped ? 'logs wrapped' : 'logs'} style={`--time-width: ${timeWidth(logs)}ch`}>
        {logs.map((log, i) => (
          <LogEntry key={i} log={log} />
        ))}
      </ol>
    </>
  )
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
