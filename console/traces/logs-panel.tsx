import { type LogRecord, listLogs } from '../api/generated/client.ts'
import { formatNanos } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { Shown } from '../ui/states.tsx'

const SHOWN = 200
/** Numbers of OTLP from which a record warns, and is an error. */
const WARN = 13
const ERROR = 17

/** The log records of a trace beside it, in the order of time. One with a span leads to it. */
export function LogsPanel(props: {
  readonly traceId: string
  readonly startNanos: bigint
  readonly selectedId: string | null
  readonly onSelect: (spanId: string) => void
  readonly onClose: () => void
}) {
  const { traceId, startNanos, selectedId, onSelect, onClose } = props
  const loaded = useLoad(`logs of ${traceId}`, signal => listLogs({ trace: traceId, limit: SHOWN }, { signal }))
  return (
    <aside class="span-panel" aria-label="Log records of the trace">
      <div class="panel-head">
        <h2>Logs</h2>
        <button type="button" class="plain" onClick={onClose}>
          Close
        </button>
      </div>
      <Shown loaded={loaded} what="log records">
        {({ logs, nextCursor }) => (
          <>
            {logs.length === 0 && <p class="quiet">No log record names this trace.</p>}
            <ol class="entries">
              {[...logs].reverse().map((log, i) => (
                <li key={i} class={log.spanId !== undefined && log.spanId === selectedId ? 'of-span' : undefined}>
                  <div class="entry-head">
                    <span class={tagOf(log.severityNumber)}>{log.severity === 'UNSPECIFIED' ? '–' : log.severity}</span>
                    <span class="quiet">after {formatNanos(nanosSince(log, startNanos))}</span>
                    {log.spanId && <SpanButton spanId={log.spanId} onSelect={onSelect} />}
                  </div>
                  <div class="message-log">{log.body || log.eventName || '(empty)'}</div>
                </li>
              ))}
            </ol>
            {nextCursor !== null && (
              <p class="quiet">
                These are {SHOWN}. <a href={addressOf('logs', { trace: traceId })}>All of them</a>
              </p>
            )}
          </>
        )}
      </Shown>
    </aside>
  )
}

function SpanButton(props: { readonly spanId: string; readonly onSelect: (spanId: string) => void }) {
  return (
    <button type="button" class="plain" onClick={() => props.onSelect(props.spanId)}>
      Span <code>{props.spanId}</code>
    </button>
  )
}

function tagOf(severityNumber: number): string {
  if (severityNumber >= ERROR) return 'tag bad'
  return severityNumber >= WARN ? 'tag doubt' : 'tag'
}

/** Returns nanoseconds from the start of the trace to a record, which has the time of its observation if it has no own. */
function nanosSince({ timeUnixNano, observedTimeUnixNano }: LogRecord, startNanos: bigint): number {
  return Number(BigInt(timeUnixNano === '0' ? observedTimeUnixNano : timeUnixNano) - startNanos)
}
