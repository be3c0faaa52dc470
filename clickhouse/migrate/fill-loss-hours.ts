import type { ClickHouseClient } from '@clickhouse/client'
import { quoteIdentifier } from '../client.ts'

/** Rows of `span_loss_hours`, as its views make them of inserts (migration 0028). */
const SOURCES = [
  `SELECT DISTINCT workspace_id, toStartOfHour(received_at) AS received_hour FROM ingest_log
   WHERE signal = 'traces' AND (notEmpty(dead_lettered) OR notEmpty(discarded))`,
  `SELECT DISTINCT workspace_id, received_hour FROM request_counts
   WHERE signal = 'traces' AND startsWith(outcome, 'refused-') AND requests > 0`,
  "SELECT DISTINCT workspace_id, received_hour FROM deleted_rows WHERE table_name = 'spans' AND rows > 0",
]

/** Settings of {@link fillLossHours}. */
export interface FillOptions {
  readonly database: string
  /** As in `MigrateOptions`. */
  readonly adapt?: (statement: string) => string | undefined
}

/**
 * Fills `span_loss_hours` with the hours of all stored losses. No view sees parts that are attached from a backup of before them,
 * and a trace of an hour that is missing here would be called complete. May be repeated: rows that are stored twice change nothing.
 */
export async function fillLossHours(
  client: ClickHouseClient,
  { database, adapt = statement => statement }: FillOptions,
): Promise<void> {
  for (const source of SOURCES) {
    const query = adapt(`INSERT INTO ${quoteIdentifier(database)}.span_loss_hours ${source}`)
    if (query === undefined) continue
    await client.command({
      query,
      clickhouse_settings: { wait_end_of_query: 1, max_partitions_per_insert_block: '0' },
      http_headers: { 'X-ClickHouse-Database': database },
    })
  }
}
