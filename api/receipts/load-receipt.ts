import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type ReceiptRow, selectReceipt } from '../../clickhouse/queries/receipts/select-receipt.ts'
import type { Receipt, ReceiptStatus } from '../../schemas/http/receipts.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { openReceiptId } from '../../shared/ids/receipt.ts'
import { labelOf, type RefusalLabel } from '../../shared/runtime/reason.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

interface Deps {
  readonly clickhouse: ClickHouseClient
  /** The key that seals the ids of receipts; undefined before the installation has accepted its first request. */
  readonly secret: Buffer | undefined
  readonly retentionDays: number
  readonly now: () => number
}

/** The reader of a receipt. */
export interface ReceiptReader {
  readonly workspaceId: string
  /** Set for surface keys, which may read only the receipts of their own surface. */
  readonly surfaceId?: string
}

/** Reasons whose details are from ClickHouse, S3 or an internal error. The details are logged, and not shown to clients. */
const INTERNAL_REASONS: ReadonlySet<string> = new Set<RefusalLabel>([
  'decoder_fault',
  'refused_by_clickhouse',
  'refused_by_object_store',
])

/**
 * Loads the receipt of a request. Returns undefined if the reader may not see it or if it is no longer retained. Throws what
 * `selectRows` throws.
 */
export async function loadReceipt(
  { clickhouse, secret, retentionDays, now }: Deps,
  reader: ReceiptReader,
  id: string,
  abortSignal: AbortSignal,
): Promise<Receipt | undefined> {
  const { workspaceId } = reader
  const opened = secret && openReceiptId(secret, workspaceId, id)
  if (opened === undefined || (reader.surfaceId ?? opened.surfaceId) !== opened.surfaceId) return undefined
  const { kind, surfaceId, arrivedAtMs } = opened
  const rows = await selectReceipt(clickhouse, { workspaceId, ...opened }, abortSignal)
  // Rows expire with their day, so a missing row of such an old request may mean anything.
  const dayMs = Math.floor(arrivedAtMs / DAY_MS) * DAY_MS
  if (rows.length === 0 && now() >= dayMs + retentionDays * DAY_MS) return undefined
  return { id, kind, surfaceId, receivedAt: rfc3339FromUnixMs(arrivedAtMs), ...presentOutcomes(rows) }
}

type Result = Pick<Receipt, 'status' | 'storedAt' | 'reason' | 'rejected' | 'objectKey' | 'history'>

/**
 * Presents the outcome of a request that was possibly replayed. A request that is stored in part stays stored, whatever
 * becomes of the rest. The history is left out if there was no replay.
 */
function presentOutcomes(rows: readonly ReceiptRow[]): Result {
  const outcomes = rows.map(presentOutcome)
  const last = outcomes.at(-1)
  if (last === undefined) return { status: 'queued' }
  if (outcomes.length === 1) return last
  const stored = outcomes.findLast(({ status }) => status === 'stored')
  const rejected = stored !== last && outcomes.findLast(outcome => outcome.rejected)?.rejected
  const shown = stored ? { ...stored, ...(rejected && { rejected }) } : last
  return { ...shown, history: rows.flatMap((row, i) => historyOf(row, outcomes[i] as Result)) }
}

function historyOf(
  { replayedAtMs, storedAtMs }: ReceiptRow,
  { status, reason }: Result,
): NonNullable<Receipt['history']> {
  const outcome = { status, at: rfc3339FromUnixMs(Number(storedAtMs)), ...(reason !== undefined && { reason }) }
  const replayed = Number(replayedAtMs)
  return replayed === 0 ? [outcome] : [{ status: 'replayed', at: rfc3339FromUnixMs(replayed) }, outcome]
}

function presentOutcome(row: ReceiptRow): Result {
  const { reason, storedAtMs, rejections } = row
  const objectKey = row.objectKey || rejections[0]?.object_key
  const letter = {
    ...(rejections.length > 0 && {
      rejected: rejections.map(({ reason: name, records }) => ({ reason: name, count: Number(records) })),
    }),
    ...(objectKey && { objectKey }),
  }
  if (reason === '') return { status: 'stored', storedAt: rfc3339FromUnixMs(Number(storedAtMs)), ...letter }
  const label = labelOf(reason)
  return { status: statusOf(row), reason: INTERNAL_REASONS.has(label) ? label : reason, ...letter }
}

function statusOf({ isDiscarded, objectKey }: ReceiptRow): ReceiptStatus {
  if (isDiscarded) return 'discarded'
  return objectKey === '' ? 'refused' : 'dead_lettered'
}
