import type { TraceLoss } from '../../../clickhouse/queries/traces/completeness/select-trace-losses.ts'
import type { Completeness, MissingCause } from '../../../schemas/http/traces/schemas.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { rfc3339FromUnixMs } from '../../http/format-time.ts'
import { DANGLING } from '../choose-spans.ts'
import type { TraceColumns } from '../load-columns.ts'
import type { Evidence } from './load-evidence.ts'

/** What is missing of a trace, and why (docs/api/traces.md#completeness). */
export interface AssessedTrace {
  readonly completeness: Completeness
  /** The first 1,000. */
  readonly missingParents: readonly (MissingParent & { readonly cause: MissingCause })[]
}

/** Time after the last arrival in which a missing parent may be among requests that are not stored yet. */
const LATE_PARENT_MS = MINUTE_MS
/** Spans of a trace that began so soon after the end of an expired day may have arrived in it. */
const LATE_SPAN_MS = HOUR_MS
/** An earlier start before the first arrival is that of a wrong clock. */
const LONGEST_TRACE_MS = DAY_MS
/** Most losses that a response names. */
const LOSSES = 20

/**
 * Assesses a trace that was read after what is settled (`beginEvidence`). It is complete only if nothing says that a span is
 * missing: no parent is, everything that was accepted before a time is stored, and no request was lost at the time of the trace.
 */
export function assessCompleteness(columns: TraceColumns, evidence: Evidence | undefined): AssessedTrace {
  const { arranged, truncated } = columns
  const losses = lossesOf(columns, evidence)
  const lossOfParents = losses.find(({ mayHideParents }) => mayHideParents)
  const missingParents = findMissingParents(columns).map(parent => ({
    ...parent,
    cause: lossOfParents?.cause ?? ownCause(parent),
  }))
  const isRootless = arranged.rootCount === 0 && missingParents.length === 0
  const reasons = new Set<MissingCause>([
    ...missingParents.map(({ cause }) => cause),
    ...losses.filter(({ mayHideSpans }) => mayHideSpans).map(({ cause }) => cause),
    ...(isRootless ? ['unknown' as const] : []),
  ])
  const isIncomplete = missingParents.length > 0 || isRootless || truncated
  return {
    completeness: {
      state: isIncomplete ? 'incomplete' : reasons.size > 0 ? 'no_gaps' : 'complete',
      ...(evidence && { settledBefore: rfc3339FromUnixMs(evidence.settledBeforeMs) }),
      reasons: [...reasons],
      losses: listLosses(evidence?.losses ?? [], isIncomplete),
    },
    missingParents,
  }
}

interface Loss {
  readonly cause: MissingCause
  /** Whether a missing parent can be explained by it. */
  readonly mayHideParents: boolean
  /** Whether spans can be missing that no other span names. */
  readonly mayHideSpans: boolean
}

/** Returns what may have taken spans, the likeliest first. */
function lossesOf({ arranged, truncated }: TraceColumns, evidence: Evidence | undefined): Loss[] {
  const loss = (cause: MissingCause, mayHideParents: boolean, mayHideSpans = mayHideParents): Loss[] =>
    mayHideParents || mayHideSpans ? [{ cause, mayHideParents, mayHideSpans }] : []
  if (evidence === undefined) return [...loss('cut', truncated), ...loss('unknown', true)]
  const { settledBeforeMs, readAtMs, arrivals, keptSinceMs, losses } = evidence
  const has = (cause: TraceLoss['cause']) => losses.some(loss => loss.cause === cause)
  const startedMs = Number(arranged.startedAtUnixNano / 1_000_000n)
  const beganMs = Math.max(Math.min(startedMs, arrivals.firstMs), arrivals.firstMs - LONGEST_TRACE_MS)
  return [
    ...loss('cut', truncated),
    ...loss(
      'in_flight',
      settledBeforeMs < readAtMs && settledBeforeMs <= arrivals.lastMs + LATE_PARENT_MS,
      settledBeforeMs <= arrivals.lastMs,
    ),
    ...loss('expired', beganMs < keptSinceMs + LATE_SPAN_MS || has('expired')),
    ...loss('erased', has('erased')),
    ...loss('dropped', has('dropped')),
    ...loss('dead_lettered', has('dead_lettered')),
    ...loss(
      'refused',
      has('refused'),
      losses.some(({ cause, count }) => cause === 'refused' && count > 0),
    ),
  ]
}

/**
 * Returns the losses at the time of the trace, the near ones first, then the largest. Requests that clients send again can have
 * taken a parent until then, and nothing else.
 */
function listLosses(losses: readonly TraceLoss[], isIncomplete: boolean): Completeness['losses'] {
  return losses
    .map(loss => ({ ...loss, count: loss.count + (isIncomplete ? loss.sentAgain : 0) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => Number(b.isNear) - Number(a.isNear) || b.count - a.count)
    .slice(0, LOSSES)
    .map(({ cause, surfaceId, isNear, rule, count, fromMs, toMs }) => ({
      ...{ cause, surfaceId, isNear, ...(rule !== undefined && { rule }), count },
      receivedFrom: rfc3339FromUnixMs(fromMs),
      receivedTo: rfc3339FromUnixMs(toMs),
    }))
}

/** Returns why a parent is missing that the service has lost in no way it knows of. */
function ownCause({ isRemote }: MissingParent): MissingCause {
  if (isRemote === undefined) return 'unknown'
  return isRemote ? 'not_received_from_other_service' : 'not_received_from_this_service'
}

/** A parent that is not retained in its trace. */
interface MissingParent {
  readonly spanId: string
  /** Index of the first of its children. */
  readonly firstChild: number
  readonly childCount: number
  /** Whether it is of another service, as its first child states. */
  readonly isRemote?: boolean
}

/** Most missing parents that a response names. `danglingParentCount` counts the spans of all. */
const MISSING_PARENTS = 1_000

/** W3C trace flags as OTLP extends them: whether it is known that the parent is of another service, and whether it is. */
const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200

/** Returns the parents that are not retained, in the order of their first children. */
function findMissingParents({ skeleton, arranged: { numbers, parents }, facts }: TraceColumns): MissingParent[] {
  const missing = new Map<string, MissingParent & { childCount: number }>()
  numbers.forEach((number, i) => {
    if (parents[i] !== DANGLING) return
    const spanId = skeleton.parentSpanId(number)
    const known = missing.get(spanId)
    if (known !== undefined) {
      known.childCount++
      return
    }
    if (missing.size === MISSING_PARENTS) return
    const flags = facts.flags[skeleton.rowOf(number)] ?? 0
    const isRemote = (flags & HAS_IS_REMOTE) === 0 ? undefined : (flags & IS_REMOTE) !== 0
    missing.set(spanId, { spanId, firstChild: i, childCount: 1, ...(isRemote === undefined ? {} : { isRemote }) })
  })
  return [...missing.values()]
}
