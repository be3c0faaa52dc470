import { millisecondsBetween } from '../http/format-time.ts'
import type { AssessedTrace } from './completeness/assess-completeness.ts'
import { JsonWriter } from './json-writer.ts'
import type { TraceColumns, Waterfall } from './load-columns.ts'

/** Bytes of which a piece is made. */
const PIECE_BYTES = 65_536
/** More than one value takes, with its comma. */
const VALUE_BYTES = 32

const COMMA = Buffer.from(',')

/**
 * Returns the JSON of the columns of a trace (docs/api/traces.md#trace-columns) piece by piece, because a million spans have
 * 50 MB of it. A piece is valid until the next one is requested. Values are written as bytes: their strings were garbage of
 * 100 MB, which V8 keeps beside the columns until it collects the whole heap.
 */
export function* renderColumns(traceId: string, columns: Waterfall, assessed: AssessedTrace): Generator<Uint8Array> {
  const { skeleton, arranged, facts, names, services, truncated } = columns
  const { numbers, parents, startedAtUnixNano, endedAtUnixNano, rootCount, danglingParentCount } = arranged
  const head = {
    traceId,
    spanCount: numbers.length,
    ...{ rootCount, danglingParentCount },
    startedAtUnixNano: String(startedAtUnixNano),
    endedAtUnixNano: String(endedAtUnixNano),
    wallDurationMs: millisecondsBetween(startedAtUnixNano, endedAtUnixNano),
    ...{ truncated, names: names.distinct(), services: services.distinct() },
    repeated: repeatedSpans(columns),
    ...assessed,
  }
  yield Buffer.from(`${JSON.stringify(head).slice(0, -1)},"spans":{"ids":"`)
  const json = new JsonWriter(PIECE_BYTES + VALUE_BYTES)
  yield* pieces(json, numbers.length, i => {
    const number = numbers[i] ?? 0
    json.hexWord(skeleton.ids[2 * number] ?? 0)
    json.hexWord(skeleton.ids[2 * number + 1] ?? 0)
  })
  json.ascii('"')
  const rowOf = (i: number) => skeleton.rowOf(numbers[i] ?? 0)
  const numbersByName: Readonly<Record<string, (i: number) => number | undefined>> = {
    startDeltaNanos: i => (i === 0 ? 0 : skeleton.nanosAfterStart(numbers[i] ?? 0, numbers[i - 1] ?? 0)),
    durationNanos: i => skeleton.durationNanos(numbers[i] ?? 0),
    parents: i => parents[i],
    names: i => names.indexOf(rowOf(i)),
    services: i => services.indexOf(rowOf(i)),
    kinds: i => facts.kinds[rowOf(i)],
    statuses: i => facts.statuses[rowOf(i)],
    flags: i => facts.flags[rowOf(i)],
  }
  for (const [name, numberOf] of Object.entries(numbersByName)) {
    json.ascii(`,"${name}":[`)
    yield* pieces(json, numbers.length, i => {
      if (i > 0) json.piece(COMMA)
      json.signed(numberOf(i) ?? 0)
    })
    json.ascii(']')
  }
  json.ascii('}}')
  yield json.take()
}

/** Writes the values of all spans, and returns pieces as soon as they are full. */
function* pieces(json: JsonWriter, count: number, write: (i: number) => void): Generator<Uint8Array> {
  for (let i = 0; i < count; i++) {
    write(i)
    if (json.size >= PIECE_BYTES) yield json.take()
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
