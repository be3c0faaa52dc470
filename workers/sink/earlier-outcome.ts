import { tableOfUnit } from '../../clickhouse/cluster/shard-units.ts'
import type { Reason, RefusalLabel } from '../../shared/runtime/reason.ts'
import type { RefusedFrame } from '../queue/letter-moves.ts'
import { type Formation, labelAt, type RefusedRequests, STORED_IN_PART } from '../queue/payloads/batch-record.ts'

/** Why a request becomes a dead letter, and what of it is stored. */
export type Refusal = Pick<RefusedFrame, 'reason' | 'rejected' | 'storedRecords' | 'storedTables'>

/** What is decided about the requests of a batch before they are decoded, because it is a part of an earlier batch. */
export interface EarlierOutcome {
  /** Refuses every request for this reason, without decoding it. */
  readonly refuseAll?: Reason | undefined
  /** Tables that contain the rows of the requests already, except of those in `unstored`. */
  readonly storedTables?: readonly string[]
  readonly unstored?: RefusedRequests | undefined
  /**
   * The batch as it was formed before, if all its inserts are known to have landed. Receipts report that outcome already, so
   * it is kept: the refused requests become dead letters, and the others are stored.
   */
  readonly published?: Formation | undefined
}

/** Reports whether anything was decided before. */
export function isDecidedBefore({ refuseAll, storedTables = [], published }: EarlierOutcome): boolean {
  return refuseAll !== undefined || storedTables.length > 0 || published !== undefined
}

/** Records of the request were left out of rows that are stored, although this decoder leaves out none. */
const LEFT_OUT_EARLIER: Refusal = {
  reason: { label: STORED_IN_PART, detail: 'an earlier version has stored the request without some of its records' },
  rejected: {},
  storedRecords: 1,
}

/** Returns why a request becomes a dead letter, if it does. Decodes it with `append` where that is not decided. */
export async function outcomeInPart(
  { refuseAll, storedTables = [], unstored, published }: EarlierOutcome,
  jobId: string,
  index: number,
  append: () => Promise<Refusal | 'large' | undefined>,
): Promise<Refusal | 'large' | undefined> {
  const label = labelAt(published?.refused ?? unstored, jobId, index) as RefusalLabel | undefined
  const wasStored = label === undefined || label === STORED_IN_PART
  if (published !== undefined && !wasStored) return { reason: { label } }
  const refusal: Refusal | 'large' | undefined = refuseAll === undefined ? await append() : { reason: refuseAll }
  if (refusal === 'large' || refusal?.rejected !== undefined) return refusal
  // The exceptions of the request have not left. A replay of its letter makes only these.
  if (refusal !== undefined && labelAt(published?.passedOn, jobId, index) !== undefined)
    return { ...refusal, storedTables: recordTables(published) }
  if (refusal !== undefined && published === undefined) {
    return wasStored && storedTables.length > 0 ? { ...refusal, storedTables } : refusal
  }
  return label === STORED_IN_PART && (published !== undefined || storedTables.length > 0) ? LEFT_OUT_EARLIER : undefined
}

/** Returns the tables of a batch without its log. */
function recordTables(formed: Formation | undefined): string[] {
  return Object.keys(formed?.tables ?? {}).filter(name => tableOfUnit(name) !== 'ingest_log')
}
