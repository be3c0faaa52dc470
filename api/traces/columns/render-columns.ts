import { millisecondsBetween } from '../../http/format-time.ts'
import type { AssessedTrace } from '../completeness/assess-completeness.ts'
import type { TraceColumns } from './load-columns.ts'

/** Spans of which a piece of text is made at a time: together they take some hundred kilobytes. */
const PIECE_SPANS = 65_536

/**
 * Returns the JSON of the columns of a trace (docs/contract.md#trace-columns) piece by piece, because a million spans have
 * 50 MB of it.
 */
export function* renderColumns(traceId: string, columns: TraceColumns, assessed: AssessedTrace): Generator<string> {
  const { skeleton, arranged, facts, names, services, truncated } = columns
  const { numbers, shape, startedAtUnixNano, endedAtUnixNano, rootCount, danglingParentCount } = arranged
  const head = {
    traceId,
    spanCount: numbers.length,
    ...{ rootCount, danglingParentCount },
    startedAtUnixNano: String(startedAtUnixNano),
    endedAtUnixNano: String(endedAtUnixNano),
    wallDurationMs: millisecondsBetween(startedAtUnixNano, endedAtUnixNano),
    ...{ truncated, names, services },
    repeated: repeatedSpans(columns),
    ...assessed,
  }
  yield `${JSON.stringify(head).slice(0, -1)},"spans":{"ids":"`
  yield* pieces(numbers.length, '', i => skeleton.spanId(numbers[i] ?? 0))
  yield '"'
  const rowOf = (i: number) => skeleton.rowOf(numbers[i] ?? 0)
  const numbersByName: Readonly<Record<string, (i: number) => number | undefined>> = {
    startDeltaNanos: i => (i === 0 ? 0 : skeleton.nanosAfterStart(numbers[i] ?? 0, numbers[i - 1] ?? 0)),
    durationNanos: i => skeleton.durationNanos(numbers[i] ?? 0),
    parents: i => shape.parents[i],
    names: i => facts.names[rowOf(i)],
    services: i => facts.services[rowOf(i)],
    kinds: i => facts.kinds[rowOf(i)],
    statuses: i => facts.statuses[rowOf(i)],
    flags: i => facts.flags[rowOf(i)],
  }
  for (const [name, textOf] of Object.entries(numbersByName)) {
    yield `,"${name}":[`
    yield* pieces(numbers.length, ',', textOf)
    yield ']'
  }
  yield '}}'
}

/** Returns the texts of the values of all spans, some spans at a time. */
function* pieces(count: number, separator: string, textOf: (i: number) => number | string | undefined) {
  for (let from = 0; from < count; from += PIECE_SPANS) {
    const to = Math.min(from + PIECE_SPANS, count)
    let piece = from === 0 ? '' : separator
    for (let i = from; i < to; i++) piece += i === from ? textOf(i) : `${separator}${textOf(i)}`
    yield piece
  }
}

/** Returns the spans that were received more than once, and how often. */
function repeatedSpans({ skeleton, arranged: { numbers } }: TraceColumns) {
  const spans: number[] = []
  const counts: number[] = []
  numbers.forEach((number, i) => {
    const count = skeleton.occurrences(number)
    if (count === 1) return
    spans.push(i)
    counts.push(count)
  })
  return { spans, counts }
}
