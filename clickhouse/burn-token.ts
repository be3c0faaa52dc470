import type { ClickHouseClient } from '@clickhouse/client'
import { DAY_MS } from '../schemas/units.ts'
import { classifyClickHouseError, quoteIdentifier } from './client.ts'

/** Prefix of the workspace of fence rows. No workspace has an id with it, and the audit leaves them out. */
export const FENCE_PREFIX = 'fence:'

/** The insert to fence. */
interface FencedInsert {
  readonly table: string
  readonly deduplicationToken: string
  /** `FENCE_PREFIX`, then an id. Rows with it as their workspace show that the fence was there first. */
  readonly fence: string
  /** Days of receipt, as days since 1970. */
  readonly days: readonly number[]
  readonly timeoutMs: number
}

/**
 * Makes sure that no insert with this token can land any more on these days, and returns the days on which one has landed
 * before. Works by using up the token: a row for each day, with the fence as its workspace, is inserted with the same token.
 * Each partition is deduplicated by itself, so a row lands exactly where no insert with the token has. No query reads the
 * rows, because every query names a workspace, and they expire as others do. Repeated, it returns the same days.
 *
 * Views are not deduplicated here. A view that has missed rows of an insert that has landed can still get them under the token.
 */
export async function fenceInsert(client: ClickHouseClient, insert: FencedInsert): Promise<ReadonlySet<number>> {
  const { table, fence, days, timeoutMs } = insert
  const abort_signal = AbortSignal.timeout(timeoutMs)
  try {
    await client.insert({
      table,
      columns: ['workspace_id', 'received_at'],
      values: days.map(day => ({ workspace_id: fence, received_at: day * DAY_MS })),
      format: 'JSONEachRow',
      abort_signal,
      clickhouse_settings: {
        insert_deduplicate: 1,
        insert_deduplication_token: insert.deduplicationToken,
        deduplicate_blocks_in_dependent_materialized_views: 0,
        async_insert: 0,
        wait_end_of_query: 1,
      },
    })
    const result = await client.query({
      query: `SELECT DISTINCT toUInt32(toDate(received_at)) AS day FROM ${quoteIdentifier(table)}
              WHERE workspace_id = {fence: String}`,
      query_params: { fence },
      format: 'JSONEachRow',
      abort_signal,
    })
    const fenced = new Set((await result.json<{ day: number }>()).map(({ day }) => Number(day)))
    return new Set(days.filter(day => !fenced.has(day)))
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
