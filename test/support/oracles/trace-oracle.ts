import { chooseSpans, DANGLING, ROOT } from '../../../api/traces/choose-spans.ts'
import type { Trace, TraceSpan } from '../../../schemas/http/traces/schemas.ts'

/** A stored row of `spans`, with texts as bytes. */
export interface StoredRow {
  readonly spanId: bigint
  readonly parentSpanId: bigint
  readonly start: bigint
  readonly end: bigint
  readonly receivedAt: bigint
  readonly digest: bigint
  readonly statusCode: number
  readonly kind: number
  readonly httpStatusCode: number
  readonly name: Uint8Array
  readonly serviceName: Uint8Array
  readonly statusMessage: Uint8Array
  readonly sessionId: Uint8Array
  readonly httpRoute: Uint8Array
}

const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const
const STATUSES = ['UNSET', 'OK', 'ERROR'] as const

/** Returns the trace of these rows with plain objects and BigInts, or undefined if there are no rows. */
export function expectedTrace(traceId: string, rows: readonly StoredRow[], limit: number): Trace | undefined {
  const copies = Map.groupBy(rows, row => row.spanId)
  if (copies.size === 0) return undefined
  const kept = [...copies.values()]
    .map(group => ({ row: group.reduce((a, b) => (precedes(b, a) ? b : a)), occurrences: group.length }))
    .sort((a, b) => compare(a.row.start, b.row.start) || compare(a.row.spanId, b.row.spanId))
  const positions = new Map(kept.map(({ row }, position) => [row.spanId, position]))
  const parents = kept.map(({ row }) =>
    row.parentSpanId === 0n ? ROOT : (positions.get(row.parentSpanId) ?? DANGLING),
  )
  const shape = {
    parents: Int32Array.from(parents),
    isError: Uint8Array.from(kept, ({ row }) => (row.statusCode === 2 ? 1 : 0)),
    sizes: new Uint32Array(kept.length),
  }
  const shown = chooseSpans(shape, limit, 1e9)
  const times = kept.flatMap(({ row }) => [row.start, row.end])
  const startedAt = kept[0]?.row.start ?? 0n
  const endedAt = times.toSorted(compare).at(-1) ?? 0n
  return {
    traceId,
    spans: shown.map(position => {
      const { row, occurrences } = kept[position] as (typeof kept)[number]
      return presentSpan(row, parents[position] === DANGLING, occurrences)
    }),
    rootCount: parents.filter(parent => parent === ROOT).length,
    danglingParentCount: parents.filter(parent => parent === DANGLING).length,
    startedAtUnixNano: String(startedAt),
    endedAtUnixNano: String(endedAt),
    wallDurationMs: milliseconds(startedAt, endedAt),
    truncated: shown.length < kept.length,
  }
}

function precedes(a: StoredRow, b: StoredRow): boolean {
  return a.receivedAt === b.receivedAt ? a.digest < b.digest : a.receivedAt < b.receivedAt
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function presentSpan(row: StoredRow, isParentMissing: boolean, occurrenceCount: number): TraceSpan {
  const parent = row.parentSpanId === 0n ? undefined : hex(row.parentSpanId)
  return {
    spanId: hex(row.spanId),
    parentSpanId: isParentMissing ? undefined : parent,
    danglingParentSpanId: isParentMissing ? parent : undefined,
    name: text(row.name),
    kind: KINDS[row.kind] ?? 'UNSPECIFIED',
    serviceName: text(row.serviceName),
    startTimeUnixNano: String(row.start),
    endTimeUnixNano: String(row.end),
    durationMs: spanMilliseconds(row.start, row.end),
    statusCode: STATUSES[row.statusCode] ?? 'UNSET',
    statusMessage: text(row.statusMessage) || undefined,
    sessionId: text(row.sessionId) || undefined,
    httpRoute: text(row.httpRoute) || undefined,
    httpStatusCode: httpStatus(row.httpStatusCode),
    occurrenceCount,
    timestamp: timestamp(row.start),
  }
}

function httpStatus(stored: number): number | undefined {
  if (stored === 65_535) return 0
  return stored === 0 || stored > 32_767 ? undefined : stored
}

function hex(id: bigint): string {
  return id.toString(16).padStart(16, '0')
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString()
}

function milliseconds(start: bigint, end: bigint): number {
  return end <= start ? 0 : Number(end - start) / 1e6
}

/** Returns the duration of a span, whose fraction is rounded from 104 days on. */
function spanMilliseconds(start: bigint, end: bigint): number {
  const seconds = Number(end / 1_000_000_000n) - Number(start / 1_000_000_000n)
  const nanos = seconds * 1e9 + (Number(end % 1_000_000_000n) - Number(start % 1_000_000_000n))
  return nanos <= 0 ? 0 : nanos / 1e6
}

function timestamp(unixNano: bigint): string {
  const second = new Date(Number(unixNano / 1_000_000_000n) * 1_000).toISOString().slice(0, 19)
  return `${second}.${String(unixNano % 1_000_000_000n).padStart(9, '0')}Z`
}

/** Returns rows in the format RowBinary, with the shown texts of `selectTraceColumns`. */
export function spanRowBinary(rows: readonly StoredRow[]): Buffer {
  return Buffer.concat(
    rows.flatMap(row => {
      const head = Buffer.alloc(60)
      head.writeBigUInt64BE(row.spanId, 0)
      head.writeBigUInt64BE(row.parentSpanId, 8)
      head.writeBigUInt64LE(row.start, 16)
      head.writeBigUInt64LE(row.end, 24)
      head.writeBigInt64LE(row.receivedAt, 32)
      head.writeBigUInt64LE(row.digest, 40)
      head.writeUInt16LE(row.httpStatusCode, 56)
      head.writeUInt8(row.kind, 58)
      head.writeUInt8(row.statusCode, 59)
      const texts = [row.name, row.serviceName, row.statusMessage, row.sessionId, row.httpRoute]
      return [head, ...texts.flatMap(bytes => [lengthOf(bytes), bytes])]
    }),
  )
}

function lengthOf(bytes: Uint8Array): Buffer {
  const digits: number[] = []
  let rest = bytes.length
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) digits.push((rest % 0x80) | 0x80)
  return Buffer.from([...digits, rest])
}
