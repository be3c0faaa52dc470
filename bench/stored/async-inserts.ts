import { ClickHouseError } from '@clickhouse/client'
import type { ClickHouseClient } from '../../clickhouse/client.ts'

/** BAD_ARGUMENTS: "Cannot flush asynchronous insert queue because it is not initialized." */
const NOT_INITIALIZED = '36'

/**
 * Whether this ClickHouse gathers asynchronous inserts. As a library it has no queue for them: `async_insert` is taken
 * without an error there, and every insert is made by itself, so only the queue can be asked.
 */
export async function hasAsyncInserts(client: ClickHouseClient): Promise<boolean> {
  try {
    await client.command({ query: 'SYSTEM FLUSH ASYNC INSERT QUEUE' })
    return true
  } catch (error) {
    if (error instanceof ClickHouseError && error.code === NOT_INITIALIZED) return false
    throw error
  }
}
