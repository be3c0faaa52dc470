import { readReceiptId } from '../../../shared/ids/receipt.ts'

/** Returns the group commit of a receipt id in hex and the index in it. */
export function receiptName(id: string): string {
  const named = readReceiptId(id)
  if (named === undefined) throw new RangeError(`${id} is not a receipt id`)
  return `${named.commit.toString('hex')} ${named.index}`
}

/** Counts the rows of the log that contain each receipt. */
export async function namedReceipts(rowsOf: <T>(query: string) => Promise<T[]>): Promise<Map<string, number>> {
  const rows = await rowsOf<{ name: string; count: string | number }>(`
    SELECT concat(lower(hex(receipt_commit)), ' ', toString(arrayJoin(receipt_indexes))) AS name, count() AS count
    FROM ingest_log GROUP BY name`)
  return new Map(rows.map(({ name, count }) => [name, Number(count)]))
}
