import type { LetterOutcome, RejectedRecords } from '../../../schemas/queues/dead-letters.ts'
import type { QueueName } from '../../../schemas/queues/names.ts'

/** Identifies a dead letter in its workspace: the request as its first job contained it. */
export interface LetterKey {
  readonly receivedAtMs: number
  readonly jobId: string
  readonly index: number
}

/** A dead letter as of its last attempt. */
export interface Letter extends LetterKey {
  readonly surfaceId: string
  readonly queue: QueueName
  readonly sessionId: string
  /** How often it was replayed and settled. */
  readonly attempt: number
  /** When that replay was begun; 0 for the request as it was sent. */
  readonly replayedAtMs: number
  /** `dead`, or `stored` by a replay. */
  readonly outcome: LetterOutcome
  /** When it was refused or stored last. */
  readonly settledAtMs: number
  readonly reason: string
  readonly detail: string
  /** Empty if the object store has refused the letter. */
  readonly objectKey: string
  readonly offset: number
  readonly length: number
  readonly bodyBytes: number
  readonly storedTables: readonly string[]
  readonly storedRecords: number
  readonly rejected: readonly RejectedRecords[]
}

/** Which letters of a workspace are meant. Absent members mean all. */
export interface LetterFilter {
  /** The first arrival. */
  readonly fromMs?: number | undefined
  /** The end of the arrivals, exclusive. */
  readonly toMs?: number | undefined
  readonly queue?: QueueName | undefined
  readonly surfaceId?: string | undefined
  readonly reason?: string | undefined
  readonly sessionId?: string | undefined
  readonly outcome?: LetterOutcome | undefined
}

/** A row of `dead_letters`. 64-bit numbers are decimal text. */
export interface LetterRow {
  readonly receivedAtMs: string
  readonly jobId: string
  readonly index: number
  readonly surfaceId: string
  readonly queue: QueueName
  readonly sessionId: string
  readonly attempt: number
  readonly replayedAtMs: string
  readonly outcome: LetterOutcome
  readonly settledAtMs: string
  readonly reason: string
  readonly detail: string
  readonly objectKey: string
  readonly offset: string
  readonly length: string
  readonly bodyBytes: string
  readonly storedTables: readonly string[]
  readonly storedRecords: string
  readonly rejected: Readonly<Record<string, string>>
  readonly rejectedRecords: readonly { readonly index: number; readonly reason: string }[]
}

/** The columns of a `LetterRow`. */
export const LETTER_COLUMNS = `
  toUnixTimestamp64Milli(received_at) AS receivedAtMs, job_id AS jobId, job_index AS index, surface_id AS surfaceId,
  queue, session_id AS sessionId, attempt,
  toUnixTimestamp64Milli(replayed_at) AS replayedAtMs, outcome, toUnixTimestamp64Milli(refused_at) AS settledAtMs, reason, detail,
  object_key AS objectKey, object_offset AS offset, object_length AS length, body_bytes AS bodyBytes,
  stored_tables AS storedTables, stored_records AS storedRecords, rejected, rejected_records AS rejectedRecords`

/** Returns the letter of a row. */
export function letterOf(row: LetterRow): Letter {
  const { rejectedRecords, ...letter } = row
  return {
    ...letter,
    receivedAtMs: Number(row.receivedAtMs),
    replayedAtMs: Number(row.replayedAtMs),
    settledAtMs: Number(row.settledAtMs),
    offset: Number(row.offset),
    length: Number(row.length),
    bodyBytes: Number(row.bodyBytes),
    storedRecords: Number(row.storedRecords),
    rejected: Object.entries(row.rejected).map(([reason, count]) => ({
      reason,
      count: Number(count),
      indexes: rejectedRecords.filter(record => record.reason === reason).map(({ index }) => index),
    })),
  }
}

/** Condition on `dead_letters` that matches the letters with these keys (`keyParams`). */
export const HAS_KEY = `workspace_id = {workspaceId: String} AND (received_at, job_id, job_index) IN (
  SELECT fromUnixTimestamp64Milli(key.1), key.2, key.3
  FROM (SELECT arrayJoin(arrayZip({times: Array(Int64)}, {jobs: Array(String)}, {indexes: Array(UInt32)})) AS key))`

/** Returns the parameters of `HAS_KEY`. */
export function keyParams(workspaceId: string, keys: readonly LetterKey[]): Record<string, unknown> {
  return {
    workspaceId,
    times: keys.map(({ receivedAtMs }) => receivedAtMs),
    jobs: keys.map(({ jobId }) => jobId),
    indexes: keys.map(({ index }) => index),
  }
}
