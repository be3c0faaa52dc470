import { GrowingBuffer } from '../../clickhouse/native/growing-buffer.ts'
import { endOfString, startOfString } from '../../clickhouse/native/native-string.ts'
import type { SpanStatsTable } from '../../clickhouse/tables/span-stats-table.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { PIECE_BYTES } from '../../shared/queue/large-values.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { inPieces } from '../queue/moves.ts'
import type { SpanStats } from './count-spans.ts'

/**
 * Statistics of spans on their way from the batch of these spans to the table `span_stats`. One after the other, little-endian:
 *
 *   record := minute(u32, in minutes) kind(u8) statusCode(u8) httpStatusClass(u8) spans(u32) durationSumNano(u64)
 *             slowestNano(u64) slowestTraceId(16) buckets(u32 n) n × (bucket u16) n × (spans u32)
 *             serviceName operation environment serviceVersion peer
 *
 * A text is its length as a varint and its UTF-8 bytes. Workspace, surface and the day of arrival are those of the frame. A change
 * of the form raises the version.
 */
const VERSION = 1
const ATTRIBUTES = JSON.stringify({ version: VERSION })
const SPANS_AT = 7
const SUM_AT = 11
const SLOWEST_AT = 19
const TRACE_AT = 27
const COUNT_AT = 43
const BUCKETS_AT = 47
const BUCKET_BYTES = 6

/** Returns the payloads that bring the statistics of a batch to the queue `span-stats`, each of about 1 MiB at most. */
export function piecesOfStats(stats: readonly SpanStats[]): (readonly PayloadFrame[])[] {
  return [...inPieces(framesOf(stats))]
}

/** Yields a frame for each surface and day, and further ones for what is over half a piece. */
function* framesOf(stats: readonly SpanStats[]): Generator<PayloadFrame> {
  const groups = Map.groupBy(stats, ({ scope: { workspaceId, surfaceId, receivedAtMs } }) =>
    [workspaceId, surfaceId, Math.floor(receivedAtMs / DAY_MS)].join(' '),
  )
  for (const group of groups.values()) {
    let out = new GrowingBuffer()
    for (const [i, one] of group.entries()) {
      append(out, one)
      if (i < group.length - 1 && out.length < PIECE_BYTES / 2) continue
      yield frameOf(one, out)
      out = new GrowingBuffer()
    }
  }
}

function frameOf({ scope: { workspaceId, surfaceId, receivedAtMs } }: SpanStats, out: GrowingBuffer): PayloadFrame {
  return {
    ...{ workspaceId, surfaceId, receivedAtMs, attributes: ATTRIBUTES },
    ...{ contentType: 'application/octet-stream', contentEncoding: 'identity' },
    body: out.bytes.subarray(0, out.length),
  }
}

function append(out: GrowingBuffer, one: SpanStats): void {
  const { durations } = one
  out.u32(one.minute)
  out.u8(one.kind)
  out.u8(one.statusCode)
  out.u8(one.httpStatusClass)
  out.u32(one.spans)
  out.u64(Number(one.durationSumNano & 0xffff_ffffn), Number((one.durationSumNano >> 32n) & 0xffff_ffffn))
  out.integer64(one.slowestNano)
  out.rawBytes(one.slowestTraceId)
  out.u32(durations.length / 2)
  for (let i = 0; i < durations.length; i += 2) out.u16(durations[i] as number)
  for (let i = 1; i < durations.length; i += 2) out.u32(durations[i] as number)
  out.text(one.scope.serviceName)
  out.text(one.operation)
  out.text(one.scope.environment)
  out.text(one.scope.serviceVersion)
  out.text(one.peer)
}

/**
 * Appends the records of a frame as rows, and returns their number. Throws a TransientError if a newer version of the workers has
 * written them, and a RangeError if they are damaged.
 */
export function appendRecords(
  table: SpanStatsTable,
  { workspaceId, surfaceId, receivedAtMs, attributes }: PayloadFrame,
  body: Buffer,
): number {
  const { version } = parseJson(attributes) as { version: number }
  if (version > VERSION) {
    throw new TransientError(`records of version ${version} are newer than ${VERSION}: left to a newer worker`)
  }
  const view = new DataView(body.buffer, body.byteOffset, body.length)
  const startOfDay = DAY_MS * Math.floor(receivedAtMs / DAY_MS)
  let rows = 0
  for (let at = 0; at < body.length; rows++) {
    const buckets = view.getUint32(at + COUNT_AT, true)
    let end = at + BUCKETS_AT + BUCKET_BYTES * buckets
    const nextText = () => {
      const [start, textEnd] = [startOfString(body, end), endOfString(body, end)]
      if (textEnd > body.length) throw new RangeError('a record of statistics is cut')
      end = textEnd
      return body.toString('utf8', start, end)
    }
    table.buffer.rows++
    table.workspaceId.fill(table.workspaceId.indexOf(workspaceId), 1)
    table.surfaceId.fill(table.surfaceId.indexOf(surfaceId), 1)
    table.receivedAt.integer64(startOfDay)
    table.minute.u32(60 * view.getUint32(at, true))
    table.kind.u8(view.getUint8(at + 4))
    table.statusCode.u8(view.getUint8(at + 5))
    table.httpStatusClass.u8(view.getUint8(at + 6))
    table.spans.u64(view.getUint32(at + SPANS_AT, true), 0)
    table.durationSum.raw(body, view, at + SUM_AT, at + SUM_AT + 8)
    table.slowestDuration.raw(body, view, at + SLOWEST_AT, at + SLOWEST_AT + 8)
    table.slowestTraceId.raw(body, view, at + TRACE_AT, at + TRACE_AT + 16)
    appendBuckets(table, view, at + BUCKETS_AT, buckets)
    table.serviceName.fill(table.serviceName.indexOf(nextText()), 1)
    table.operation.fill(table.operation.indexOf(nextText()), 1)
    table.environment.fill(table.environment.indexOf(nextText()), 1)
    table.serviceVersion.fill(table.serviceVersion.indexOf(nextText()), 1)
    table.peer.fill(table.peer.indexOf(nextText()), 1)
    at = end
  }
  return rows
}

function appendBuckets({ bucketEnds, buckets, bucketCounts }: SpanStatsTable, view: DataView, at: number, n: number) {
  for (let i = 0; i < n; i++) buckets.u16(view.getUint16(at + 2 * i, true))
  for (let i = 0; i < n; i++) bucketCounts.u64(view.getUint32(at + 2 * n + 4 * i, true), 0)
  bucketEnds.u64(buckets.length / 2, 0)
}
