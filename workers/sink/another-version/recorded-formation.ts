import { type Formation, labelAt, type NamedBatch, STORED_IN_PART } from '../../queue/payloads/batch-record.ts'
import type { PayloadStore } from '../../queue/payloads/payload-store.ts'

/**
 * Returns what is recorded of a batch before its first insert, and records it if nothing is. Returns undefined if the batch is
 * finished or divided.
 */
export async function recordedFormation(
  store: Pick<PayloadStore, 'describeBatch'>,
  named: NamedBatch,
  formed: Formation,
): Promise<Formation | undefined> {
  if (named.formed !== undefined) return named.formed
  if (!gainsRows(named, formed)) return store.describeBatch(named, formed)
  return { ...formed, tables: {}, refused: named.unstored ?? {} }
}

/** Returns whether a request has rows now that the tables which are stored do not contain. */
function gainsRows({ storedTables, unstored, jobIds }: NamedBatch, { refused }: Formation): boolean {
  if (storedTables.length === 0) return false
  return jobIds.some(jobId =>
    Object.entries(unstored?.[jobId] ?? {}).some(([before, runs]) =>
      runs.some((first, i) => i % 2 === 0 && isAnyGained(refused, jobId, first, runs[i + 1] as number, before)),
    ),
  )
}

function isAnyGained(
  refused: Formation['refused'],
  jobId: string,
  first: number,
  last: number,
  before: string,
): boolean {
  for (let index = first; index <= last; index++) {
    const now = labelAt(refused, jobId, index)
    if (now === undefined || (now === STORED_IN_PART && before !== STORED_IN_PART)) return true
  }
  return false
}
