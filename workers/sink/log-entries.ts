import type { IngestLogEntry } from '../../clickhouse/tables/ingest-log-table.ts'
import { commitOf, indexOf } from '../../shared/ids/receipt.ts'
import { hashOfSession } from '../../shared/ids/session-hash.ts'
import { pageRequestOf } from '../../shared/queue/page-request.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import {
  DROPPED,
  ONLY_COUNTED,
  type RejectedByReason,
  type Rejection,
  type RejectionLabel,
  reasonText,
} from '../../shared/runtime/reason.ts'
import type { RefusedFrame } from '../queue/letter-moves.ts'
import type { DroppedRecords } from './row-batch.ts'

/** The most hashes of dropped spans of an entry and a rule: 80 kB. */
const DROPPED_SPANS_MAX = 20_000

/** Returns whether nothing of the request is stored. */
export function isRefused({ rejected, storedRecords = 0 }: RefusedFrame): boolean {
  return rejected === undefined || storedRecords === 0
}

/** Returns the labels of rejected records with their counts. */
function rejectionsOf(rejected: RejectedByReason): readonly [RejectionLabel, Rejection][] {
  return Object.entries(rejected) as [RejectionLabel, Rejection][]
}

/** Returns the log entry of a job and surface that this frame belongs to. */
export function entryOf(
  entries: Map<string, IngestLogEntry>,
  signal: string,
  jobId: string,
  frame: PayloadFrame,
  replayedAtMs = 0,
): IngestLogEntry {
  const { workspaceId, surfaceId, receivedAtMs, receipt } = frame
  const commit = receipt === undefined ? '' : commitOf(receipt)
  const key = `${signal} ${jobId} ${workspaceId} ${surfaceId} ${replayedAtMs} ${commit}`
  let entry = entries.get(key)
  if (entry === undefined) {
    const counts = { payloads: 0, bytes: 0, rows: 0, derivedRows: 0, rejected: new Map() }
    const byRule = { scrubbed: new Map(), dropped: new Map(), droppedSpans: new Map() }
    const letters = {
      deadLettered: new Map(),
      discarded: new Map(),
      discardedIndexes: [],
      refused: [],
      rejections: [],
      pageRequests: [],
    }
    const source = { workspaceId, surfaceId, receivedAtMs, replayedAtMs, jobId, signal }
    entry = { ...source, ...counts, ...byRule, ...letters, commit, indexes: [] }
    entries.set(key, entry)
  }
  entry.receivedAtMs = Math.min(entry.receivedAtMs, receivedAtMs)
  return entry
}

/** Counts a request of `bytes` as settled. */
export function countRequest(entry: IngestLogEntry, { receipt }: PayloadFrame, bytes: number): void {
  if (receipt !== undefined) entry.indexes.push(indexOf(receipt))
  entry.payloads++
  entry.bytes += bytes
}

/** Notes the number of a request that its page has numbered. */
export function notePageRequest(entry: IngestLogEntry, frame: PayloadFrame): void {
  const request = pageRequestOf(frame)
  if (request === undefined) return
  const { session, page, sequence } = request
  entry.pageRequests.push({ sessionHash: hashOfSession(session), page, sequence })
}

/** Returns the records of a request for which it becomes a dead letter, if there are any. */
export function lostRecords(rejected: RejectedByReason): RejectedByReason | undefined {
  const lost = rejectionsOf(rejected).filter(([label]) => !ONLY_COUNTED.has(label))
  return lost.length > 0 ? Object.fromEntries(lost) : undefined
}

/** Counts the records of a request that are left out. The receipt names those that are only counted too. */
export function countRejected(entry: IngestLogEntry, { receipt }: PayloadFrame, rejected: RejectedByReason): void {
  for (const [label, rejection] of rejectionsOf(rejected)) {
    increment(entry.rejected, label, rejection.count)
    if (ONLY_COUNTED.has(label) && receipt !== undefined) {
      const { count, details } = rejection
      const noted = details?.map(detail => [`${label}: ${detail}`, 1] as const) ?? [[label, count] as const]
      for (const [reason, records] of noted) {
        entry.rejections.push({ index: indexOf(receipt), reason, records, objectKey: '' })
      }
    }
  }
}

/** Counts the records of a request that rules have dropped. */
export function countDropped(entry: IngestLogEntry, dropped: ReadonlyMap<string, DroppedRecords>): void {
  for (const [rule, { count, spans }] of dropped) {
    increment(entry.dropped, rule, count)
    if (spans.length === 0) continue
    const hashes = entry.droppedSpans.get(rule) ?? []
    for (const hash of spans.slice(0, DROPPED_SPANS_MAX - hashes.length)) hashes.push(hash)
    entry.droppedSpans.set(rule, hashes)
  }
}

/** Notes for the receipt of a request which rules have dropped records of it. */
export function noteDropped(
  entry: IngestLogEntry,
  { receipt }: PayloadFrame,
  dropped: ReadonlyMap<string, DroppedRecords>,
): void {
  if (receipt === undefined) return
  for (const [rule, { count }] of dropped) {
    entry.rejections.push({ index: indexOf(receipt), reason: `${DROPPED}: ${rule}`, records: count, objectKey: '' })
  }
}

/**
 * Counts a dead letter by `label` and notes, for the receipt of its request, which object will contain it. The key is empty if the
 * letter is not kept. Returns the bytes of the note.
 */
export function note(
  entry: IngestLogEntry,
  request: RefusedFrame,
  objectKey: string,
  label: string = request.reason.label,
): number {
  const { frame, reason, rejected = {} } = request
  increment(objectKey === '' ? entry.discarded : entry.deadLettered, label, 1)
  if (frame.receipt === undefined) return 0
  const index = indexOf(frame.receipt)
  if (objectKey === '') entry.discardedIndexes.push(index)
  let bytes = 0
  for (const [label, { count }] of rejectionsOf(rejected)) {
    entry.rejections.push({ index, reason: label, records: count, objectKey })
    bytes += label.length + objectKey.length
  }
  if (isRefused(request)) {
    const text = reasonText(reason)
    entry.refused.push({ index, reason: text, objectKey })
    bytes += text.length + objectKey.length
  }
  return bytes
}

/** Adds to a counter. */
export function increment<K extends string>(counts: Map<K, number>, key: K, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}
