import type { ClickHouseClient } from '../client.ts'
import { selectRows } from '../select.ts'

/** The part of a row of `ingest_log` that concerns one request. 64-bit numbers are decimal text. */
export interface ReceiptRow {
  readonly storedAtMs: string
  /** When the request was replayed from its dead letter; 0 for the request as it was sent. */
  readonly replayedAtMs: string
  /** Empty unless the request was refused. */
  readonly reason: string
  /** Key of the object with the dead letter; empty if there is none. */
  readonly objectKey: string
  /** 1 if the dead letter of the request was over the bound of its surface and day, and is not kept. */
  readonly isDiscarded: number
  /** Records that are left out, by reason. The key is that of the dead letter; empty if there is none. */
  readonly rejections: readonly { readonly reason: string; readonly records: string; readonly object_key: string }[]
}

/** Identifies a request by the content of its receipt. */
interface ReceiptKey {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly commit: Buffer
  readonly index: number
  /** Arrival of the first request of the group commit. */
  readonly arrivedAtMs: number
}

/**
 * Tolerance for `received_at`, which is the arrival of the first request of the surface in the group commit. A group
 * commit is open for a few seconds at most, and the clock of the edge may have been adjusted meanwhile.
 */
const EARLIER_MS = 5_000
const LATER_MS = 15_000
/** A receipt shows this many replays at most. */
const MAX_OUTCOMES = 100

/**
 * Returns the outcomes of a request: as it was sent, then those of its replays. None if it is pending or expired. The arrival
 * keeps the read small.
 */
export async function selectReceipt(
  client: ClickHouseClient,
  { workspaceId, surfaceId, commit, index, arrivedAtMs }: ReceiptKey,
  signal: AbortSignal,
): Promise<ReceiptRow[]> {
  return selectRows<ReceiptRow>(client, {
    query: `
      SELECT toUnixTimestamp64Milli(stored_at) AS storedAtMs, toUnixTimestamp64Milli(replayed_at) AS replayedAtMs,
             arrayFirst(request -> request.index = {index: UInt32}, refused) AS refusal,
             refusal.reason AS reason, refusal.object_key AS objectKey,
             has(discarded_indexes, {index: UInt32}) AS isDiscarded,
             arrayFilter(rejection -> rejection.index = {index: UInt32}, rejections) AS rejections
      FROM ingest_log
      PREWHERE workspace_id = {workspaceId: String} AND surface_id = {surfaceId: String}
        AND received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64})
        AND receipt_commit = unhex({commit: String})
      WHERE has(receipt_indexes, {index: UInt32})
      ORDER BY replayed_at, stored_at
      LIMIT 1 BY replayed_at
      LIMIT {limit: UInt32}`,
    params: {
      workspaceId,
      surfaceId,
      commit: commit.toString('hex'),
      index,
      limit: MAX_OUTCOMES,
      fromMs: arrivedAtMs - EARLIER_MS,
      toMs: arrivedAtMs + LATER_MS,
    },
    signal,
  })
}
