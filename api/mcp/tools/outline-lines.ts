import type { BriefSpan, TraceOutline } from '../../traces/outline/outline-trace.ts'
import { quotedText } from '../data-text.ts'
import type { Answer } from '../fit-answer.ts'

const NAME_CHARACTERS = 120

/** Returns an outline as lines, which have half the characters of its JSON. Every text of telemetry is in quotes. */
export function outlineLines(fitted: Answer): string[] {
  const outline = fitted as unknown as Pick<TraceOutline, 'services' | 'errors' | 'spans' | 'missingParents'> & {
    readonly trace: Omit<TraceOutline, 'services' | 'errors' | 'spans' | 'missingParents' | 'completeness'>
  }
  const { trace, services, errors, spans, missingParents } = outline
  return [
    `trace ${trace.traceId}: ${trace.spanCount} spans, ${trace.errorCount} with errors, ${trace.wallDurationMs} ms from ${trace.startedAt}`,
    `services: ${services.map(({ service, spanCount, errorCount }) => `${quoted(service)} ${spanCount} spans${errorCount > 0 ? ` (${errorCount} with errors)` : ''}`).join(', ')}`,
    ...errors.map(error => `error: ${briefLine(error)}`),
    ...missingParents.map(
      ({ spanId, childCount, cause }) => `missing parent ${spanId} of ${childCount} spans, cause: ${cause}`,
    ),
    'spans, each with start and duration in ms:',
    ...spans.map(span => {
      const marks = [
        span.isError && 'ERROR',
        span.isCritical && 'critical',
        span.isParentMissing && 'parent missing',
        span.similar && `×${span.similar.count} alike, ${span.similar.totalMs} ms in all`,
        span.hiddenChildCount && `${span.hiddenChildCount} children hidden`,
      ].filter(mark => mark)
      return `${'  '.repeat(span.depth)}${briefLine(span)}${marks.length > 0 ? ` [${marks.join(', ')}]` : ''}`
    }),
  ]
}

function briefLine({ startMs, durationMs, name, service, spanId }: BriefSpan): string {
  return `+${startMs} ${durationMs} ${quoted(name)} ${quoted(service)} ${spanId}`
}

/** The text is fitted already, so that characters which cannot be seen are written out. */
function quoted(text: string): string {
  return quotedText(text, NAME_CHARACTERS)
}
