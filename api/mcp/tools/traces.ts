import { z } from 'zod'
import { listOf, wholeNumber } from '../../../schemas/http/fields.ts'
import { pageLimit } from '../../../schemas/http/page.ts'
import { askedTraceIdSchema, type SpanDetails, spanIdSchema } from '../../../schemas/http/traces/schemas.ts'
import { listTracesQuerySchema } from '../../../schemas/http/traces/search.ts'
import { rfc3339FromUnixNano } from '../../http/format-time.ts'
import { notFound, TRACES } from '../../http/resource.ts'
import { type BriefSpan, outlineTrace, type TraceOutline } from '../../traces/outline/outline-trace.ts'
import { readTracesPage } from '../../traces/search/list-traces.ts'
import { readSpanDetails } from '../../traces/traces.ts'
import { quotedText } from '../data-text.ts'
import type { Answer } from '../fit-answer.ts'
import { defineTool } from '../tool.ts'
import { attributesOf, nextCursor, text } from './fields.ts'

const SPANS_MAX = 20
const LOSSES_SHOWN = 5
const entry = z.looseObject({})
const askedTraceId = text(64, 'The id of a trace: 32 hex digits in lower case, or 16 of an id of 64 bits.')

/** Searches traces. */
export const searchTracesTool = defineTool({
  name: 'search_traces',
  title: 'Search traces',
  description:
    'Searches traces by service, span name, status, duration, attribute, session, finding and time, newest first. Continue with outline_trace.',
  permission: 'org:telemetry:read',
  resource: TRACES,
  madeOf: ['traces'],
  input: listTracesQuerySchema.safeExtend({ limit: pageLimit(25, 10) }),
  output: { traces: z.array(z.looseObject({ traceId: z.string(), startedAt: z.string() })), nextCursor },
  async read(deps, request) {
    const page = await readTracesPage(deps, request)
    if (!page.ok) return page
    const traces = page.value.traces.map(({ startedAtUnixNano, endedAtUnixNano: _, ...trace }) => ({
      ...trace,
      startedAt: rfc3339FromUnixNano(BigInt(startedAtUnixNano)),
    }))
    return { ok: true, value: { answer: { traces, nextCursor: page.value.nextCursor } } }
  },
})

/** Outlines a trace. */
export const outlineTraceTool = defineTool({
  name: 'outline_trace',
  title: 'Outline a trace',
  description:
    'Returns a trace of any size as a short tree: paths to errors first, then the critical path, then the longest spans. Siblings of the same name are one line with their count. States whether spans are missing and why. Read a hidden part with `under`, and attributes and events with get_spans.',
  permission: 'org:telemetry:read',
  resource: TRACES,
  madeOf: ['traces'],
  input: z.object({
    traceId: askedTraceId,
    under: text(64, 'The id of a span, to outline only what is below it.').optional(),
    maxSpans: wholeNumber(10, 150).default(50).meta({ description: 'Most lines of the tree.', default: 50 }),
  }),
  output: {
    trace: z.looseObject({ traceId: z.string(), spanCount: z.number(), errorCount: z.number() }),
    services: z.array(entry).describe('Services with most spans.'),
    errors: z.array(entry).describe('The first spans with an error.'),
    spans: z.array(z.looseObject({ depth: z.number(), spanId: z.string(), name: z.string() })),
    missingParents: z.array(entry).describe('Spans that others name as their parent, and that are not stored.'),
  },
  async read(deps, { workspaceId, query: { traceId: id, under, maxSpans }, deadline }) {
    const traceId = askedTraceIdSchema.safeParse(id).data
    if (traceId === undefined) return notFound(TRACES)
    const outline = await outlineTrace(deps, { workspaceId, traceId }, { under, maxSpans }, deadline)
    if (outline === undefined) return notFound(TRACES)
    const { services, errors, spans, missingParents, completeness, ...trace } = outline
    const { settledBefore, losses, ...verdict } = completeness
    return {
      ok: true,
      value: {
        answer: { trace, services, errors, spans, missingParents },
        // The time of the verdict itself, which is at or before that of the watermark.
        evidence: {
          ...(settledBefore !== undefined && { settledBefore }),
          completeness: { ...verdict, losses: losses.slice(0, LOSSES_SHOWN) },
        },
        lines: outlineLines,
        ...(spans.length < trace.spanCount && {
          hint: 'spans: what has hiddenChildCount or similar is shown in part; outline it with `under`',
        }),
      },
    }
  },
})

/** Reads whole spans. */
export const getSpansTool = defineTool({
  name: 'get_spans',
  title: 'Get whole spans',
  description: `Returns spans of a trace with attributes, events, links and resource. At most ${SPANS_MAX}, as outline_trace or search_logs name them.`,
  permission: 'org:telemetry:read',
  resource: TRACES,
  madeOf: ['traces'],
  input: z.object({
    traceId: askedTraceId,
    spanIds: listOf(z.string().max(64), SPANS_MAX, 'must be a list of span ids').refine(
      ids => ids.length > 0,
      'must have at least one item',
    ),
  }),
  output: {
    spans: z.array(z.looseObject({ spanId: z.string(), name: z.string() })),
    absent: z.array(z.string()).describe('Spans that are not stored in the trace.'),
    unread: z.array(z.string()).describe('Spans for which there was no room: ask for fewer.'),
  },
  async read(deps, { workspaceId, query: { traceId: id, spanIds }, deadline }) {
    const known = spanIds.filter(spanId => spanIdSchema.safeParse(spanId).success)
    if (known.length === 0) return notFound(TRACES)
    const read = await readSpanDetails(deps, { workspaceId, traceId: id }, known, deadline)
    if (!read.ok) return read
    const { spans, rest, tooLarge, absent } = read.value
    const malformed = spanIds.filter(spanId => !known.includes(spanId))
    const answer = {
      spans: spans.map(briefDetails),
      absent: [...absent, ...malformed],
      unread: [...rest, ...tooLarge],
    }
    const hint = 'whole spans: POST /v3/traces/{traceId}/spans'
    return { ok: true, value: { answer, ...(tooLarge.length > 0 && { hint }) } }
  },
})

/** Leaves out of a span what is empty, and what does not help to find a cause. */
function briefDetails(span: SpanDetails) {
  const { attributes, events, links, resource, scope, startTimeUnixNano, endTimeUnixNano: _, ...rest } = span
  const { traceState, flags, receivedAt, surfaceId, occurrenceCount, timestamp, findingIds, ...shown } = rest
  const dropped = {
    attributes: rest.droppedAttributesCount,
    events: rest.droppedEventsCount,
    links: rest.droppedLinksCount,
  }
  const { droppedAttributesCount, droppedEventsCount, droppedLinksCount, ...core } = shown
  const start = BigInt(startTimeUnixNano)
  return {
    ...core,
    startedAt: timestamp,
    receivedAt,
    ...(findingIds.length > 0 && { findingIds }),
    attributes: attributesOf(attributes),
    ...(events.length > 0 && {
      events: events.map(event => ({
        afterMs: Number(BigInt(event.timeUnixNano) - start) / 1e6,
        name: event.name,
        attributes: attributesOf(event.attributes),
      })),
    }),
    ...(links.length > 0 && { links: links.map(link => ({ traceId: link.traceId, spanId: link.spanId })) }),
    resource: resource.attributes,
    scope: scope.name,
    ...(Object.values(dropped).some(count => count > 0) && { droppedBySender: dropped }),
  }
}

const NAME_CHARACTERS = 120

/** Returns an outline as lines, which have half the characters of its JSON. Every text of telemetry is in quotes. */
function outlineLines(fitted: Answer): string[] {
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
