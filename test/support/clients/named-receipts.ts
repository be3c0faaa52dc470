import { readReceiptId } from '../../../shared/ids/receipt.ts'

/** What an id names: its commit in hex, and the place in it. */
export function receiptName(id: string): string {
  const named = readReceiptId(id)
  if (named === undefined) throw new RangeError(`${id} is no id of a receipt`)
  return `${named.commit.toString('hex')} ${named.index}`
}

/** How many rows of the log name a receipt, by its name. */
export async function namedReceipts(rowsOf: <T>(query: string) => Promise<T[]>): Promise<Map<string, number>> {
  const rows = await rowsOf<{ name: string; count: string | number }>(`
    SELECT concat(lower(hex(receipt_commit)), ' ', toString(arrayJoin(receipt_indexes))) AS name, count() AS count
    FROM ingest_log GROUP BY name`)
  return new Map(rows.map(({ name, count }) => [name, Number(count)]))
}
