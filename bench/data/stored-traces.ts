/** Counts of the traces in a filled table. Each trace is derived from its number, so that filling and reading agree. */
interface TraceCounts {
  /** Number of traces in all workspaces and days. */
  readonly traces: number
  readonly perWorkspace: number
  /** Number of traces in one part of one day, in all workspaces. */
  readonly perSlot: number
  readonly days: number
}

/** Number of filled workspaces. */
export const WORKSPACES = 20
/** Number of filled days, unless a measurement needs another one. */
export const DAYS = 7
/** Number of findings in a workspace. */
const FINDINGS_PER_WORKSPACE = 100
/** Spans of a small trace. */
export const SMALL_TRACE_SPANS = 20
/** Spans of a large trace. */
export const LARGE_TRACE_SPANS = 1_000

/**
 * The largest number of parts a day that merges were seen to leave, whatever their size. Inserts of 10,000 and of 100,000
 * rows, with 1.4 and 14 million rows a day, ended with 4 to 8 parts.
 */
export const PARTS_PER_DAY = 8

/** Returns the parts of all days. Every trace belongs to one part, and neighbours by key are never in the same part. */
const slotsOf = (days: number) => days * PARTS_PER_DAY
const LARGE_EVERY = 500
const SPANS_PER_TRACE = SMALL_TRACE_SPANS + (LARGE_TRACE_SPANS - SMALL_TRACE_SPANS) / LARGE_EVERY

/** Returns the counts for a table of about this many spans in these days. */
export function countTraces(spans: number, days: number = DAYS): TraceCounts {
  const perWorkspaceSlot = Math.round(spans / SPANS_PER_TRACE / WORKSPACES / slotsOf(days))
  const perWorkspace = perWorkspaceSlot * slotsOf(days)
  return { traces: perWorkspace * WORKSPACES, perWorkspace, perSlot: perWorkspaceSlot * WORKSPACES, days }
}

/** Returns the id of a filled workspace. */
export const workspaceId = (number: number) => `ws_${String(number).padStart(2, '0')}`

/** Returns a query of traces. `numbers` selects their numbers as `n`; ascending `n` is the order of the table's key. */
export function tracesQuery({ perWorkspace, days }: TraceCounts, numbers: string, firstDay: string): string {
  const idStep = 2n ** 64n / BigInt(perWorkspace)
  return `
    SELECT n, intDiv(n, ${perWorkspace}) AS workspace, n % ${perWorkspace} AS rank, cityHash64(workspace, rank) AS seed,
      concat('ws_', leftPad(toString(workspace), 2, '0')) AS workspace_id,
      -- Ids all over the key space: one at random in each of as many equal ranges as the workspace has traces.
      toFixedString(concat(
        reinterpretAsFixedString(byteSwap(toUInt64(rank * ${idStep} + seed % ${idStep}))),
        reinterpretAsFixedString(sipHash64(seed))), 16) AS trace_id,
      toDate('${firstDay}') + intDiv(n % ${slotsOf(days)}, ${PARTS_PER_DAY}) AS day,
      toDateTime64(day, 3, 'UTC') + toIntervalMillisecond(seed % 86000000) AS received_at,
      seed % ${LARGE_EVERY} = 0 AS is_large,
      if(is_large, ${LARGE_TRACE_SPANS}, ${SMALL_TRACE_SPANS}) AS spans,
      is_large OR seed % 50 = 1 AS has_finding,
      -- Base32 has no 0, 1, 8 and 9.
      concat('fnd_', substring(translate(
        lower(hex(sipHash128(workspace, intDiv(seed, 500) % ${FINDINGS_PER_WORKSPACE}))), '0189', 'wxyz'), 1, 26)) AS finding_id
    FROM (${numbers})`
}

/** Returns a query of additional traces with this many spans each. All have a finding. */
export function sizedTracesQuery(counts: TraceCounts, spans: number, traces: number, firstDay: string): string {
  const numbers = `SELECT number * ${Math.floor(counts.traces / traces)} AS n FROM numbers(${traces})`
  return `
    SELECT * REPLACE (
      toUInt64(${spans}) AS spans, true AS has_finding, sipHash64(seed, ${spans}) AS seed,
      toFixedString(concat(substring(trace_id, 1, 8), reinterpretAsFixedString(sipHash64(seed, ${spans}))), 16) AS trace_id)
    FROM (${tracesQuery(counts, numbers, firstDay)})`
}

/** Selects the numbers of all traces. */
export const allNumbers = ({ traces }: TraceCounts) => `SELECT number AS n FROM numbers(${traces})`

/** Selects the numbers of the traces in one part of one day. */
export const slotNumbers = ({ perSlot, days }: TraceCounts, day: number, part: number) =>
  `SELECT number * ${slotsOf(days)} + ${day * PARTS_PER_DAY + part} AS n FROM numbers(${perSlot})`
