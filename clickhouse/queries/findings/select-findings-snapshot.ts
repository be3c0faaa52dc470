import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** What of the findings was stored at one moment, for all the pages of one list. */
export interface FindingsSnapshot {
  /** Unix ms by the clock of ClickHouse. */
  readonly asOfMs: number
  /** The last block of `finding_arrivals` that was seen. */
  readonly block: number
}

export async function selectFindingsSnapshot(client: ClickHouseClient, signal: AbortSignal): Promise<FindingsSnapshot> {
  const [row] = await selectRows<{ asOfMs: string; block: string }>(client, {
    query: `SELECT toUnixTimestamp64Milli(now64(3)) AS asOfMs, max(max_block_number) AS block
            FROM system.parts WHERE database = currentDatabase() AND table = 'finding_arrivals'`,
    params: {},
    signal,
  })
  return { asOfMs: Number(row?.asOfMs), block: Number(row?.block) }
}
