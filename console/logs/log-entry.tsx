import type { LogRecord } from '../api/generated/client.ts'
import { addressOf } from '../state/router.ts'
import { AttributeTable, attributesOf } from '../ui/attributes.tsx'
import { SessionLink } from '../ui/session-link.tsx'
import { Time } from '../ui/text.tsx'

const TAGS: Readonly<Record<LogRecord['severity'], string>> = {
  UNSPECIFIED: 'tag',
  TRACE: 'tag',
  DEBUG: 'tag',
  INFO: 'tag',
  WARN: 'tag doubt',
  ERROR: 'tag bad',
  FATAL: 'tag bad',
}

/** A log record: its body, and on demand everything else that was received of it. */
export function LogEntry({ log }: { readonly log: LogRecord }) {
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
        </p>
        <AttributeTable attributes={[...log.attributes, ...attributesOf(log.resource.attributes)]} />
      </details>
    </li>
  )
}
