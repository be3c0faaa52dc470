import type { ClickHouseClient } from '@clickhouse/client'
import { DAY_MS } from '../schemas/units.ts'
import { classifyClickHouseError } from './client.ts'
import { quoteIdentifier } from './quote.ts'

/** Prefix of the workspace of the rows that burn tokens. No workspace has an id with it, and the audit leaves them out. */
export const BURNED_PREFIX = 'burned:'

/** The insert whose token is burned. */
interface BurnedInsert {
  readonly table: string
  readonly deduplicationToken: string
  /** Days of receipt, as days since 1970. */
  readonly days: readonly number[]
  readonly timeoutMs: number
}

/**
 * Makes sure that no insert with this token can land any more on these days, and returns the days on which one has landed
 * before. Works by using up the token: a row for each day is inserted with it. The workspace of the row is `BURNED_PREFIX`
 * and the token. Each day is deduplicated by itself, so a row lands exactly where no insert with the token has. No query
 * reads the rows, because every query names a workspace, and they expire as others do. Repeated, it returns the same days.
 *
 * Views are not deduplicated here. A view that has missed rows of an insert that has landed can still get them under the token.
 */
export async function burnToken(client: ClickHouseClient, insert: BurnedInsert): Promise<ReadonlySet<number>> {
  const { table, deduplicationToken, days, timeoutMs } = insert
  const workspace = BURNED_PREFIX + deduplicationToken
  const abort_signal = AbortSignal.timeout(timeoutMs)
  try {
    await client.insert({
      table,
      columns: ['workspace_id', 'received_at'],
      values: days.map(day => ({ workspace_id: workspace, received_at: day * DAY_MS })),
      format: 'JSONEachRow',
      abort_signal,
      clickhouse_settings: {
        insert_deduplicate: 1,
        insert_deduplication_token: deduplicationToken,
        deduplicate_blocks_in_dependent_materialized_views: 0,
        async_insert: 0,
        wait_end_of_query: 1,
      },
    })
    const result = await client.query({
      query: `SELECT DISTINCT toUInt32(toDate(received_at)) AS day FROM ${quoteIdentifier(table)}
              WHERE workspace_id = {workspace: String}`,
      query_params: { workspace },
      format: 'JSONEachRow',
      abort_signal,
    })
    const burned = new Set((await result.json<{ day: number }>()).map(({ day }) => Number(day)))
    return new Set(days.filter(day => !burned.has(day)))
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
