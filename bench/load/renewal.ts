import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import type { Signal } from '../../schemas/queues/names.ts'

/** Byte offsets of the fields in a payload that change before it is sent again. */
export interface RenewableFields {
  /** Offsets of trace, span and parent ids. */
  readonly ids: Uint32Array
  /** Offsets of times in nanoseconds (fixed64). */
  readonly times: Uint32Array
  /** Nanoseconds from the earliest of `times` to each of them. */
  readonly sinceFirst: Float64Array
}

/** Offsets of a payload that is sent unchanged. */
export const NOTHING_RENEWABLE: RenewableFields = {
  ids: new Uint32Array(),
  times: new Uint32Array(),
  sinceFirst: new Float64Array(),
}

/** Field numbers on the path to a record, and those of its ids and times. */
interface RecordFields {
  readonly path: readonly (readonly number[])[]
  readonly ids: readonly number[]
  readonly times: readonly number[]
}

const RECORDS: Record<Signal, RecordFields> = {
  // ResourceSpans, ScopeSpans, Span: trace_id, span_id, parent_span_id; start_time_unix_nano, end_time_unix_nano.
  traces: { path: [[1], [2], [2]], ids: [1, 2, 4], times: [7, 8] },
  // ResourceLogs, ScopeLogs, LogRecord: trace_id, span_id; time_unix_nano, observed_time_unix_nano.
  logs: { path: [[1], [2], [2]], ids: [9, 10], times: [1, 11] },
  // ResourceMetrics, ScopeMetrics, Metric, its data of any kind, data point: time_unix_nano. The start of a series
  // stays.
  metrics: { path: [[1], [2], [2], [5, 7, 9, 10, 11], [1]], ids: [], times: [3] },
}

/** Finds the fields of a payload. `offset`, the start of the body in its request, is added to every position. */
export function findRenewable(signal: Signal, body: Buffer, offset = 0): RenewableFields {
  const record = RECORDS[signal]
  const ids: number[] = []
  const times: number[] = []
  descend(body, 0, body.length, record.path, (start, end) => {
    eachField(body, start, end, (field, type, at) => {
      if (type === WireType.LengthDelimited && record.ids.includes(field)) ids.push(at)
      else if (type === WireType.Bit64 && record.times.includes(field)) times.push(at)
    })
  })
  const values = times.map(at => body.readBigUInt64LE(at))
  const [first = 0n] = BigUint64Array.from(values).sort()
  return {
    ids: Uint32Array.from(ids, at => at + offset),
    times: Uint32Array.from(times, at => at + offset),
    sinceFirst: Float64Array.from(values, value => Number(value - first)),
  }
}

const TWO_TO_32 = 2 ** 32

/**
 * Changes the first bytes of every id in the same way, so that parents stay parents and the traces get new positions in
 * the key space. Moves all times so that the first is now (Unix time in ms). 600 ids take 2 µs.
 */
export function renew(bytes: Buffer, { ids, times, sinceFirst }: RenewableFields, change: number, nowMs: number): void {
  for (const at of ids) bytes.writeInt32LE(bytes.readInt32LE(at) ^ change, at)
  const now = nowMs * 1e6
  const high = Math.floor(now / TWO_TO_32)
  const low = now - high * TWO_TO_32
  for (let i = 0; i < times.length; i++) {
    const at = times[i] as number
    const sum = low + (sinceFirst[i] as number)
    bytes.writeUInt32LE(sum % TWO_TO_32, at)
    bytes.writeUInt32LE(high + Math.floor(sum / TWO_TO_32), at + 4)
  }
}

/** Creates a sequence of all 32-bit numbers except zero, each once (Marsaglia's xorshift). */
export function createChanges(seed: number): () => number {
  let state = seed | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state
  }
}

/** Calls `each` with the start and end of every message at the end of the path. */
function descend(
  body: Buffer,
  start: number,
  end: number,
  [step, ...rest]: RecordFields['path'],
  each: (start: number, end: number) => void,
): void {
  if (step === undefined) {
    each(start, end)
    return
  }
  eachField(body, start, end, (field, type, at, to) => {
    if (type === WireType.LengthDelimited && step.includes(field)) descend(body, at, to, rest, each)
  })
}

/** Calls `each` with the number, type, start and end of every field of a message. */
function eachField(
  body: Buffer,
  start: number,
  end: number,
  each: (field: number, type: WireType, start: number, end: number) => void,
): void {
  const reader = new BinaryReader(body.subarray(start, end))
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    if (type === WireType.LengthDelimited) {
      const length = reader.uint32()
      each(field, type, start + reader.pos, start + reader.pos + length)
      reader.pos += length
    } else {
      const at = reader.pos
      reader.skip(type)
      each(field, type, start + at, start + reader.pos)
    }
  }
}
