import type { ClaimedStore } from '../shared/installation/claimed-store.ts'
import { type ClickHouseClient, classifyClickHouseError, onFirstShard } from './client.ts'
import { selectRows } from './select.ts'

const TIMEOUT_MS = 5_000

interface Row {
  readonly id: string
  readonly epochs: Readonly<Record<string, string>>
}

/** Returns ClickHouse as a store that contains the id of its installation: the latest row of `installation`, on the first shard. */
export function claimedClickHouse(client: ClickHouseClient): ClaimedStore {
  const read = async () => {
    const query = 'SELECT id, epochs FROM installation ORDER BY written_at DESC, id LIMIT 1'
    const [row] = await onFirstShard(client, shard =>
      selectRows<Row>(shard, { query, params: {}, signal: AbortSignal.timeout(TIMEOUT_MS) }),
    )
    return row
  }
  const write: ClaimedStore['replace'] = async ({ id, epochs }) => {
    try {
      await onFirstShard(client, shard =>
        shard.insert({
          table: 'installation',
          values: [{ id, epochs }],
          columns: ['id', 'epochs'],
          format: 'JSONEachRow',
          abort_signal: AbortSignal.timeout(TIMEOUT_MS),
          clickhouse_settings: { async_insert: 0, wait_end_of_query: 1, insert_deduplicate: 0 },
        }),
      )
    } catch (error) {
      throw classifyClickHouseError(error)
    }
  }
  return {
    name: 'clickhouse',
    read,
    async claim(claim) {
      if ((await read()) === undefined) await write(claim)
    },
    replace: write,
  }
}
