import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type ReceiptRow, selectReceipt } from '../../clickhouse/queries/receipts/select-receipt.ts'
import type { Receipt, ReceiptStatus } from '../../schemas/http/receipts/schemas.ts'
import { openReceiptId } from '../../shared/ids/receipt.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

export interface LoadReceiptDeps {
  readonly clickhouse: ClickHouseClient
  /** Of the installation; undefined before anything was accepted. */
  readonly secret: Buffer | undefined
  readonly retentionDays: number
  readonly now: () => number
}

/** Who asks for it. */
export interface ReceiptReader {
  readonly workspaceId: string
  /** Of a key: it sees its own surface's receipts alone. */
  readonly surfaceId?: string
}

const DAY_MS = 24 * 60 * 60 * 1_000

/** What ClickHouse or S3 said, or a fault of ours: details for the log, not for whoever holds a public key. */
const INTERNAL_REASONS: ReadonlySet<string> = new Set([
  'decoder_fault',
  'refused_by_clickhouse',
  'refused_by_object_store',
])

/**
 * What became of a request; undefined when its reader may not know of such a receipt, or nothing of it is retained.
 * Throws what `selectRows` throws.
 */
export async function loadReceipt(
  { clickhouse, secret, retentionDays, now }: LoadReceiptDeps,
  reader: ReceiptReader,
  id: string,
  signal: AbortSignal,
): Promise<Receipt | undefined> {
  const { workspaceId } = reader
  const opened = secret && openReceiptId(secret, workspaceId, id)
  if (opened === undefined || (reader.surfaceId ?? opened.surfaceId) !== opened.surfaceId) return undefined
  const { kind, surfaceId, arrivedAtMs } = opened
  const row = await selectReceipt(clickhouse, { workspaceId, ...opened }, signal)
  // Rows go with their day: without one nothing can be told of a request that came so long ago.
  const dayMs = Math.floor(arrivedAtMs / DAY_MS) * DAY_MS
  if (row === undefined && now() >= dayMs + retentionDays * DAY_MS) return undefined
  return { id, kind, surfaceId, receivedAt: rfc3339FromUnixMs(arrivedAtMs), ...presentOutcome(row) }
}

function presentOutcome(row: ReceiptRow | undefined): Pick<Receipt, 'status' | 'storedAt' | 'reason' | 'objectKey'> {
  if (row === undefined) return { status: 'queued' }
  const { reason, objectKey, storedAtMs } = row
  if (reason === '') return { status: 'stored', storedAt: rfc3339FromUnixMs(Number(storedAtMs)) }
  const [label = ''] = reason.split(':', 1)
  const status: ReceiptStatus = objectKey === '' ? 'refused' : 'dead_lettered'
  return {
    status,
    reason: INTERNAL_REASONS.has(label) ? label : reason,
    ...(objectKey !== '' && { objectKey }),
  }
}
