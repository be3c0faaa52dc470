import type { TableBuffer } from '../clickhouse/native/table-buffer.ts'
import { BuildReportsTable } from '../clickhouse/tables/build-reports-table.ts'
import { DeadLettersTable } from '../clickhouse/tables/dead-letters-table.ts'
import { IngestLogTable } from '../clickhouse/tables/ingest-log-table.ts'
import { ReplayChunksTable } from '../clickhouse/tables/replay-chunks-table.ts'
import { SessionHeartbeatsTable } from '../clickhouse/tables/session-heartbeats-table.ts'
import { SessionIdentitiesTable } from '../clickhouse/tables/session-identities-table.ts'
import { buildReportSchema } from '../schemas/http/releases/schemas.ts'
import { storedLetterSchema } from '../schemas/queues/dead-letters.ts'
import {
  buildReportJobSchema,
  replayChunkSchema,
  sessionEventSchema,
  settlementSchema,
} from '../schemas/queues/jobs.ts'
import { commitOf, indexOf } from '../shared/ids/receipt.ts'
import type { PayloadFrame } from '../shared/queue/payload-frame.ts'
import { detailOf, labelOf, type RejectedByReason } from '../shared/runtime/reason.ts'
import type { KnownScrubbing } from './scrubbing/known-scrubbing.ts'
import { scrubbed } from './scrubbing/scrubbed-rows.ts'
import { createBufferedRows } from './sink/buffered-rows.ts'
import type { RowBatch } from './sink/row-batch.ts'

/** Creates rows of `session_identities` and `session_heartbeats` from the events of the queue `sessions`. */
export function createSessionsBatch(known?: KnownScrubbing): RowBatch {
  const identities = new SessionIdentitiesTable()
  const heartbeats = new SessionHeartbeatsTable()
  const scrubbing: Parameters<typeof scrubbed>[1] = { scrubberOf: undefined }
  const rows = createBufferedRows([identities.buffer, heartbeats.buffer], (frame, body) => {
    const event = sessionEventSchema.parse(JSON.parse(body.toString()))
    const { sessionId, deviceId = '', visitorId = '', fpHash = '', leftOut } = event
    const rejected = leftOut && { field_left_out: { count: leftOut.length, indexes: [], details: leftOut } }
    const { workspaceId, surfaceId, receivedAtMs } = frame
    const scrubber = scrubbing.scrubberOf?.(workspaceId)
    scrubber?.beginRequest()
    const row = { workspaceId, surfaceId, sessionId, receivedAtMs, deviceId, visitorId, fpHash }
    if (event.kind === 'heartbeat') {
      heartbeats.append(row)
      return { rows: 1, rejected }
    }
    const { identifier, source, avatar = '', email = '', name = '', country = '', traits = '{}' } = event
    // A request that was refused has left its counts.
    scrubber?.takeCounts()
    const text = (value: string) => scrubber?.scrubString(value) ?? value
    const person = { identifier: text(identifier), avatar: text(avatar), email: text(email), name: text(name) }
    const origin = { sourceType: text(source.type), sourceName: text(source.name), country: text(country) }
    identities.append({ ...row, ...person, ...origin, traits: scrubber?.scrubText(traits) ?? traits })
    return { rows: 1, rejected, scrubbed: scrubber?.takeCounts() }
  })
  return known === undefined ? rows : scrubbed(rows, scrubbing, known)
}

/** Creates rows of `ingest_log` from the settlements of the queue `receipts`, one row per request. */
export function createReceiptsBatch(): RowBatch {
  const table = new IngestLogTable()
  return createJsonRowsBatch([table.buffer], ({ workspaceId, surfaceId, receivedAtMs, receipt = '' }, value) => {
    const { kind, jobId, bytes, refusal, replayedAtMs, counted = {} } = settlementSchema.parse(value)
    const index = indexOf(receipt)
    // A refused request that is neither kept nor discarded was refused in its response, and is not a dead letter.
    const refusals = (isCounted: boolean | undefined) =>
      new Map(refusal && isCounted ? [[labelOf(refusal.reason), 1]] : [])
    const onlyCounted = Object.entries(counted)
    table.append({
      workspaceId,
      surfaceId,
      receivedAtMs,
      replayedAtMs,
      jobId,
      signal: kind,
      payloads: 1,
      bytes,
      rows: 0,
      derivedRows: 0,
      rejected: new Map(onlyCounted),
      scrubbed: new Map(),
      dropped: new Map(),
      droppedSpans: new Map(),
      deadLettered: refusals(refusal?.objectKey !== ''),
      discarded: refusals(refusal?.isDiscarded),
      commit: commitOf(receipt),
      indexes: [index],
      refused: refusal ? [{ index, ...refusal }] : [],
      discardedIndexes: refusal?.isDiscarded ? [index] : [],
      rejections: onlyCounted.map(([reason, records]) => ({ index, reason, records, objectKey: '' })),
      pageRequests: [],
    })
  })
}

/** Creates rows of `replay_chunks` from the stored chunks in the queue `replay-chunks`. */
export function createReplayChunksBatch(): RowBatch {
  const table = new ReplayChunksTable()
  return createBufferedRows([table.buffer], (frame, body) => {
    const { firstTs, lastTs, firstEventMs, lastEventMs, sha256, sentSha256, truncatedLines, scrubbed, ...chunk } =
      replayChunkSchema.parse(JSON.parse(body.toString()))
    const { workspaceId, surfaceId, receivedAtMs } = frame
    table.append({
      ...chunk,
      workspaceId,
      surfaceId,
      receivedAtMs,
      segmentNumber: segmentNumber(chunk.segmentId),
      activityCount: Math.min(chunk.activityCount, 0xffff_ffff),
      // Rounding away a fraction of a millisecond must not leave an event outside its chunk.
      firstTsMs: Math.floor(firstTs),
      lastTsMs: Math.ceil(lastTs),
      firstEventMs: Math.floor(firstEventMs),
      lastEventMs: Math.ceil(lastEventMs),
      sha256: Buffer.from(sha256, 'hex'),
      sentSha256: Buffer.from(sentSha256, 'hex'),
    })
    const rejected = truncatedLines === undefined ? {} : { truncated_line: { count: truncatedLines, indexes: [] } }
    return { rows: 1, rejected, scrubbed: scrubbed && new Map(scrubbed) }
  })
}

/** Returns -1 for a text that is not a number, and for a number beyond the safe integers. */
function segmentNumber(segmentId: string): number {
  if (!/^(0|[1-9]\d{0,15})$/.test(segmentId)) return -1
  const value = Number(segmentId)
  return Number.isSafeInteger(value) ? value : -1
}

/** Creates rows of `build_reports` from the reports of the queue `build-reports`. */
export function createBuildReportsBatch(): RowBatch {
  const table = new BuildReportsTable()
  return createJsonRowsBatch([table.buffer], (frame, value) => {
    const { slug, isUnknown } = buildReportJobSchema.parse(JSON.parse(frame.attributes))
    const { workspaceId, surfaceId, receivedAtMs } = frame
    table.append({ ...buildReportSchema.parse(value), workspaceId, surfaceId, releaseSlug: slug, receivedAtMs })
    return isUnknown && { unknown_release: { count: 1, indexes: [] } }
  })
}

/** Creates rows of `dead_letters` from the stored letters in the queue `dead-letter-index`. */
export function createDeadLettersBatch(): RowBatch {
  const table = new DeadLettersTable()
  return createJsonRowsBatch([table.buffer], ({ workspaceId, surfaceId, receivedAtMs, receipt = '' }, value) => {
    const { reason, index, offset, length, ...letter } = storedLetterSchema.parse(value)
    table.append({
      ...letter,
      workspaceId,
      surfaceId,
      receivedAtMs,
      receipt,
      reason: labelOf(reason),
      detail: detailOf(reason),
      jobIndex: index,
      objectOffset: offset,
      objectLength: length,
    })
  })
}

/**
 * Creates a batch of requests whose JSON bodies the service wrote itself, one row each. `appendRow` throws on other bodies, and
 * may return what of the request is left out.
 */
function createJsonRowsBatch(
  buffers: readonly TableBuffer[],
  appendRow: (frame: PayloadFrame, value: unknown) => RejectedByReason | undefined,
): RowBatch {
  return createBufferedRows(buffers, (frame, body) => ({
    rows: 1,
    rejected: appendRow(frame, JSON.parse(body.toString())),
  }))
}
