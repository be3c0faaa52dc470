import type { TraceKey } from '../../../clickhouse/read-connection.ts'
import type { Completeness, MissingCause } from '../../../schemas/http/traces/schemas.ts'
import { millisecondsBetween, rfc3339FromUnixNano } from '../../http/format-time.ts'
import { assessCompleteness } from '../completeness/assess-completeness.ts'
import { beginEvidence, type EvidenceDeps } from '../completeness/load-evidence.ts'
import { type TraceReadDeps, useWaterfall } from '../load-columns.ts'
import { chooseOutline } from './choose-outline.ts'
import { TraceTree } from './trace-tree.ts'

/** Stores from which an outline is made. */
export type OutlineDeps = EvidenceDeps & TraceReadDeps

/** Selects the part of a trace that is outlined. */
interface OutlineOptions {
  /** The span from which the outline goes down; the whole trace if undefined. */
  readonly under: string | undefined
  readonly maxSpans: number
}

/** A span without its details. Times are from the start of the trace. */
export interface BriefSpan {
  readonly spanId: string
  readonly name: string
  readonly service: string
  readonly startMs: number
  readonly durationMs: number
}

/** A span of an outline, in the order of the tree. */
interface OutlinedSpan extends BriefSpan {
  readonly depth: number
  readonly isError?: true
  readonly isCritical?: true
  readonly isParentMissing?: true
  /** Siblings of the same name, service and outcome that this one represents, and the time of all. */
  readonly similar?: { readonly count: number; readonly totalMs: number }
  readonly hiddenChildCount?: number
}

/** A trace in outline. Counts are of all of it. */
export interface TraceOutline {
  readonly traceId: string
  readonly startedAt: string
  readonly wallDurationMs: number
  readonly spanCount: number
  readonly errorCount: number
  readonly rootCount: number
  readonly danglingParentCount: number
  readonly services: readonly { readonly service: string; readonly spanCount: number; readonly errorCount: number }[]
  readonly serviceCount: number
  /** The first errors by start. */
  readonly errors: readonly BriefSpan[]
  readonly spans: readonly OutlinedSpan[]
  readonly completeness: Completeness
  /** The first missing parents. */
  readonly missingParents: readonly {
    readonly spanId: string
    readonly childCount: number
    readonly cause: MissingCause
  }[]
}

const ERRORS_SHOWN = 10
const SERVICES_SHOWN = 20
const PARENTS_SHOWN = 10

/** Outlines a trace. Returns undefined if it is not retained, or does not have the span. */
export async function outlineTrace(
  deps: OutlineDeps,
  key: TraceKey,
  { under, maxSpans }: OutlineOptions,
  deadline: AbortSignal,
): Promise<TraceOutline | undefined> {
  const loadEvidence = await beginEvidence(deps, key, deadline)
  return useWaterfall(deps, key, deadline, async (columns): Promise<TraceOutline | undefined> => {
    const { completeness, missingParents } = assessCompleteness(columns, await loadEvidence(columns.arrivals))
    const { rootCount, danglingParentCount, startedAtUnixNano, endedAtUnixNano } = columns.arranged
    const tree = new TraceTree(columns)
    const top = under === undefined ? undefined : tree.find(under)
    if (under !== undefined && top === undefined) return undefined
    // If every span is on a cycle of parents, none is at the top.
    const tops = top === undefined ? (tree.tops.length === 0 ? [0] : tree.tops) : [top]
    const counts = servicesOf(tree)
    return {
      traceId: key.traceId,
      startedAt: rfc3339FromUnixNano(startedAtUnixNano),
      wallDurationMs: millisecondsBetween(startedAtUnixNano, endedAtUnixNano),
      spanCount: tree.size,
      ...{ errorCount: tree.errorCount, rootCount, danglingParentCount },
      services: counts.slice(0, SERVICES_SHOWN),
      serviceCount: counts.length,
      errors: firstErrors(tree).map(span => briefSpan(tree, span)),
      spans: outlinedSpans(tree, tops, maxSpans),
      completeness,
      missingParents: missingParents
        .slice(0, PARENTS_SHOWN)
        .map(({ spanId, childCount, cause }) => ({ spanId, childCount, cause })),
    }
  })
}

function outlinedSpans(tree: TraceTree, tops: readonly number[], maxSpans: number): OutlinedSpan[] {
  return chooseOutline(tree, tops, maxSpans).map(
    ({ span, depth, isCritical, count, totalMs, hiddenChildCount }): OutlinedSpan => ({
      depth,
      ...briefSpan(tree, span),
      ...(tree.isError(span) && { isError: true as const }),
      ...(isCritical && { isCritical: true as const }),
      ...(tree.isParentMissing(span) && { isParentMissing: true as const }),
      ...(count > 1 && { similar: { count, totalMs: rounded(totalMs) } }),
      ...(hiddenChildCount > 0 && { hiddenChildCount }),
    }),
  )
}

function briefSpan(tree: TraceTree, span: number): BriefSpan {
  return {
    spanId: tree.spanId(span),
    name: tree.name(span),
    service: tree.service(span),
    startMs: rounded(tree.startMs(span)),
    durationMs: rounded(tree.durationMs(span)),
  }
}

/** Rounds to microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}

function firstErrors(tree: TraceTree): number[] {
  const errors: number[] = []
  for (let span = 0; span < tree.size && errors.length < ERRORS_SHOWN; span++) if (tree.isError(span)) errors.push(span)
  return errors
}

/** Returns the services by their number of spans. */
function servicesOf(tree: TraceTree) {
  const counts = new Map<number, { service: string; spanCount: number; errorCount: number }>()
  for (let span = 0; span < tree.size; span++) {
    const number = tree.serviceNumber(span)
    const count = counts.get(number) ?? { service: tree.service(span), spanCount: 0, errorCount: 0 }
    counts.set(number, count)
    count.spanCount++
    if (tree.isError(span)) count.errorCount++
  }
  return [...counts.values()].sort((a, b) => b.spanCount - a.spanCount)
}
