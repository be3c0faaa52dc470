import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** A row of `ingest_log` as one request of it sees it; 64-bit numbers as decimal text. */
export interface ReceiptRow {
  readonly storedAtMs: string
  /** Empty unless the request was refused. */
  readonly reason: string
  /** Of its dead letter; empty where there is none. */
  readonly objectKey: string
}

export interface ReceiptKey {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly commit: Buffer
  readonly index: number
  /** Of the first request of the commit. */
  readonly arrivedAtMs: number
}

/**
 * A row's `received_at` is that of the first request of its surface: a commit is filled for a few seconds at most, and
 * the clock of its edge may have been set meanwhile.
 */
const EARLIER_MS = 5_000
const LATER_MS = 15_000

/** What became of a request; undefined while nothing has, or no longer. Its time makes it a read of a few granules. */
export async function selectReceipt(
  client: ClickHouseClient,
  { workspaceId, surfaceId, commit, index, arrivedAtMs }: ReceiptKey,
  signal: AbortSignal,
): Promise<ReceiptRow | undefined> {
  const [row] = await selectRows<ReceiptRow>(client, {
    query: `
      SELECT toUnixTimestamp64Milli(stored_at) AS storedAtMs,
             arrayFirst(request -> request.index = {index: UInt32}, refused) AS refusal,
             refusal.reason AS reason, refusal.object_key AS objectKey
      FROM ingest_log
      PREWHERE workspace_id = {workspaceId: String} AND surface_id = {surfaceId: String}
        AND received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64})
        AND receipt_commit = unhex({commit: String})
      WHERE has(receipt_indexes, {index: UInt32})
      LIMIT 1`,
    params: {
      workspaceId,
      surfaceId,
      commit: commit.toString('hex'),
      index,
      fromMs: arrivedAtMs - EARLIER_MS,
      toMs: arrivedAtMs + LATER_MS,
    },
    signal,
  })
  return row
}
