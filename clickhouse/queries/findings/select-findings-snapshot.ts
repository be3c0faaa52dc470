import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** A moment that all pages of a list of findings are read at. */
export interface FindingsSnapshot {
  /** Unix ms by the clock of ClickHouse. */
  readonly asOfMs: number
  /** The last block of `finding_arrivals` at this moment. */
  readonly block: number
}

/** Returns the current snapshot. */
export async function selectFindingsSnapshot(client: ClickHouseClient, signal: AbortSignal): Promise<FindingsSnapshot> {
  const [row] = await selectRows<{ asOfMs: string; block: string }>(client, {
    query: `SELECT toUnixTimestamp64Milli(now64(3)) AS asOfMs, max(max_block_number) AS block
            FROM system.parts WHERE database = currentDatabase() AND table = 'finding_arrivals'`,
    params: {},
    signal,
    settings: { max_threads: 1 },
  })
  return { asOfMs: Number(row?.asOfMs), block: Number(row?.block) }
}
