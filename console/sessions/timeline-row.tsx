import type { ComponentChildren } from 'preact'
import type { TimelineEntry } from '../api/generated/client.ts'
import { counted, formatNanos } from '../state/format.ts'
import { addressOf } from '../state/router.ts'
import { Time } from '../ui/text.tsx'

/** An entry of a timeline. Findings, spans and log records lead to their pages. */
export function TimelineRow(props: {
  readonly entry: TimelineEntry
  readonly startedAt: string
  readonly isCurrent: boolean
  /** Has the player go to the time of the entry, where there is one. */
  readonly onSeek: ((at: number) => void) | undefined
}) {
  const { entry, startedAt, isCurrent, onSeek } = props
  const offset = (Date.parse(entry.at) - Date.parse(startedAt)) * 1e6
  return (
    <li class={`timeline-${entry.kind}`} aria-current={isCurrent ? 'time' : undefined}>
      <span class="timeline-time">
        {onSeek ? (
          <button type="button" class="plain" onClick={() => onSeek(Date.parse(entry.at))} title="Play from this time">
            <Time iso={entry.at} exact />
          </button>
        ) : (
          <Time iso={entry.at} exact />
        )}
        {offset >= 0 && <span class="quiet">{` +${formatNanos(offset)}`}</span>}
      </span>
      <span class="tag">{entry.kind}</span>
      <span class="timeline-text">{textOf(entry)}</span>
    </li>
  )
}

function textOf(entry: TimelineEntry): ComponentChildren {
  switch (entry.kind) {
    case 'span':
      return (
        <a data-row href={addressOf(`traces/${entry.traceId}`, { span: entry.spanId })}>
          {entry.serviceName || '–'}: {entry.name} {entry.status === 'ERROR' && <span class="tag bad">error</span>}{' '}
          <span class="quiet">{formatNanos(entry.durationMs * 1e6)}</span>
        </a>
      )
    case 'finding':
      return (
        <a data-row href={addressOf(`findings/${entry.findingId}`)}>
          <strong>{entry.type || 'Exception'}</strong> {entry.message}
        </a>
      )
    case 'log':
      return (
        <>
          <span class={entry.severityNumber >= 17 ? 'tag bad' : 'tag'}>{entry.severityText ?? 'log'}</span>{' '}
          {entry.body || entry.eventName}{' '}
          {entry.traceId && (
            <a data-row href={addressOf(`traces/${entry.traceId}`, { span: entry.spanId })}>
              Trace
            </a>
          )}
        </>
      )
    case 'heartbeat':
      return `from device ${entry.deviceId ?? 'unknown'}`
    case 'identity':
      return `${entry.name ?? entry.identifier} (${entry.source.name})`
    case 'replay':
      return `${counted(entry.eventCount, 'event')} of window ${entry.windowId}${entry.hasFullSnapshot ? ', with a full snapshot' : ''}`
  }
}
