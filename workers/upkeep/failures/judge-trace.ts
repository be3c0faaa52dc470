/** Rows of one trace that are equal in what identifies an exception, and what was decided on them before. */
export interface TraceRow {
  /** Identifies the rows in their trace. */
  readonly key: string
  readonly findingId: string
  /** 16 hexadecimal digits. Zeros if a log record names no span. */
  readonly spanId: string
  /** Whether the rows state that a span failed, and are no exceptions. */
  readonly isFailure: boolean
  /** Rows in `exceptions`. */
  readonly stored: number
  /** Rows of `stored` that do not count. */
  readonly twins: number
}

/** A change of how many rows with a key do not count. */
interface TwinChange<Row> {
  readonly row: Row
  readonly change: number
}

/** Rows to store, so that each occurrence of a trace counts once. */
interface TraceVerdict<Row> {
  /** Failed spans that count from now on. */
  readonly kept: readonly Row[]
  readonly changes: readonly TwinChange<Row>[]
}

/** Parents by span. Spans without a parent are left out. */
export type SpanParents = ReadonlyMap<string, string>

const NO_SPAN = '0'.repeat(16)

/**
 * Decides which rows of a trace count (docs/api/findings.md#one-failure). The exceptions of a finding on one span count once,
 * unless a span below has an exception of the same finding. A failed span counts unless an exception is at or below it, or a
 * failed span below it.
 *
 * The result depends on the rows, on the parents and on what was decided before, so a later row of the trace corrects it.
 */
export function judgeTrace<Row extends TraceRow>(rows: readonly Row[], parents: SpanParents): TraceVerdict<Row> {
  const located = rows.filter(({ spanId }) => spanId !== NO_SPAN)
  const { explained, hasBelow } = lookBelow(located, withoutCycles(parents, located))
  const kept: Row[] = []
  const changes: TwinChange<Row>[] = []
  const groups = Map.groupBy(located, ({ spanId, findingId, isFailure }) =>
    isFailure ? spanId : `${spanId} ${findingId}`,
  )
  for (const [place, group] of groups) {
    const ordered = group.toSorted(byKey)
    const counts = !(group[0]?.isFailure ? explained : hasBelow).has(place)
    const stored = ordered.filter(row => row.stored > 0)
    const counting = counts ? (stored.find(row => row.stored > row.twins) ?? stored[0]) : undefined
    for (const row of stored) {
      const change = row.stored - Number(row === counting) - row.twins
      if (change !== 0) changes.push({ row, change })
    }
    if (counts && counting === undefined) kept.push(...ordered.slice(0, 1))
  }
  return { kept, changes }
}

const byKey = (a: TraceRow, b: TraceRow) => (a.key < b.key ? -1 : 1)

/** What is at or below the spans of a trace. */
interface Below {
  /** Spans with an exception at or below them, or a failed span below them. */
  readonly explained: ReadonlySet<string>
  /** Spans and findings, joined by a space: an exception of the finding is below the span. */
  readonly hasBelow: ReadonlySet<string>
}

/** Each walk up ends where an earlier one has been, so that a span is visited once for each finding. */
function lookBelow(rows: readonly TraceRow[], parents: SpanParents): Below {
  const explained = new Set<string>()
  const hasBelow = new Set<string>()
  const markAbove = (marked: Set<string>, spanId: string, suffix: string) => {
    for (let at = parents.get(spanId); at !== undefined && !marked.has(at + suffix); at = parents.get(at)) {
      marked.add(at + suffix)
    }
  }
  for (const { spanId, findingId, isFailure } of rows) {
    markAbove(explained, spanId, '')
    if (isFailure) continue
    explained.add(spanId)
    markAbove(hasBelow, spanId, ` ${findingId}`)
  }
  return { explained, hasBelow }
}

/** Returns the parents of the spans of rows and of the spans above them, without one link of each cycle. */
function withoutCycles(parents: SpanParents, rows: readonly TraceRow[]): SpanParents {
  const found = new Map<string, string>()
  const seen = new Set<string>()
  for (const { spanId } of rows) {
    const path = new Set<string>()
    let at: string | undefined = spanId
    while (at !== undefined && !seen.has(at)) {
      seen.add(at)
      path.add(at)
      const parent = parents.get(at)
      if (parent !== undefined) found.set(at, parent)
      at = parent
    }
    if (at === undefined || !path.has(at)) continue
    const spans = [...path]
    const [least = at] = spans.slice(spans.indexOf(at)).sort()
    found.delete(least)
  }
  return found
}
