import type { IngestLogEntry } from '../../clickhouse/tables/ingest-log-table.ts'
import type { PassedOn } from '../../schemas/queues/exceptions.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { RejectedByReason } from '../../shared/runtime/reason.ts'
import type { JobNotes } from './batch-letters.ts'
import {
  countDropped,
  countRejected,
  countRequest,
  entryOf,
  increment,
  noteDropped,
  notePageRequest,
} from './log-entries.ts'
import type { DroppedRecords } from './row-batch.ts'

/** A request of a job, as its outcome is counted. */
interface CountedRequest {
  readonly signal: string
  readonly jobId: string
  readonly index: number
  readonly frame: PayloadFrame
  /** When it was replayed from its dead letter. */
  readonly replayedAtMs: number | undefined
}

/** The result of decoding a request. */
export interface Decoded {
  readonly rows: number
  readonly derivedRows: number
  readonly rejected: RejectedByReason
  readonly scrubbed?: ReadonlyMap<string, number> | undefined
  readonly dropped?: ReadonlyMap<string, DroppedRecords> | undefined
  /** Where the records are that it passes on. */
  readonly start: number
  readonly end: number
}

/** Nothing was made of a request. */
export const NOT_DECODED: Decoded = { rows: 0, derivedRows: 0, rejected: {}, start: 0, end: 0 }

/**
 * Counts a request in the log of its batch and returns the entry that has its outcome. The log of a batch counts the rows, the
 * scrubbed values and the dropped records of a request that passes records on, and the log of the batch that stores these has its
 * outcome. `isPassedOn` states that where it is decided.
 */
export function countOutcome(
  { entries, passedOn }: Pick<JobNotes, 'entries' | 'passedOn'>,
  { signal, jobId, index, frame, replayedAtMs }: CountedRequest,
  { rows, derivedRows, rejected, scrubbed, dropped, start, end }: Decoded,
  isPassedOn = end > start,
): IngestLogEntry {
  const entry = entryOf(entries, signal, jobId, frame, replayedAtMs)
  entry.rows += rows
  entry.derivedRows += derivedRows
  for (const [rule, values] of scrubbed ?? []) increment(entry.scrubbed, rule, values)
  if (dropped !== undefined) countDropped(entry, dropped)
  if (rejected.repeated_request === undefined) notePageRequest(entry, frame)
  const own = isPassedOn ? entryOf(new Map(), signal, jobId, frame, replayedAtMs) : undefined
  const outcome = own ?? entry
  countRequest(outcome, frame, frame.body.length)
  countRejected(outcome, frame, rejected)
  if (dropped !== undefined) noteDropped(outcome, frame, dropped)
  if (own === undefined && end === start) return entry
  const { workspaceId, surfaceId, receivedAtMs, receipt } = frame
  // The frame itself is not kept, because the memory of its payload is used again.
  const source = { workspaceId, surfaceId, receivedAtMs, receipt }
  passedOn.push({ source, signal, jobId, index, entry: own, start, end })
  return outcome
}

/** Counts the rows of records that were passed on, and the outcome of their request if the frame has it. */
export function countPassedOn(
  entries: Map<string, IngestLogEntry>,
  { frame, signal, jobId, replayedAtMs }: CountedRequest,
  passedOn: PassedOn | undefined,
  rows: number,
): IngestLogEntry {
  const replayed = replayedAtMs ?? passedOn?.replayedAtMs
  const entry = entryOf(entries, passedOn?.signal ?? signal, passedOn?.jobId ?? jobId, frame, replayed)
  entry.derivedRows += rows
  const { outcome } = passedOn ?? {}
  if (outcome === undefined) return entry
  countRequest(entry, frame, outcome.bytes)
  for (const name of ['rejected', 'deadLettered', 'discarded'] as const) {
    for (const [reason, count] of Object.entries(outcome[name])) increment(entry[name], reason, count)
  }
  entry.discardedIndexes.push(...outcome.discardedIndexes)
  entry.refused.push(...outcome.refused)
  entry.rejections.push(...outcome.rejections)
  return entry
}
