import { BURNED_PREFIX } from '../../burn-token.ts'
import type { ClickHouseClient } from '../../client.ts'
import { LOGGED_ROWS } from '../../logged-rows.ts'
import { selectRows } from '../../select.ts'
import type { AuditedTable } from './audited-tables.ts'
import type { AuditRange } from './select-request-balance.ts'

/** Rows of one table, surface and hour of arrival, where what is stored is not what was logged and not deleted. */
export interface RowDifference {
  readonly workspaceId: string
  readonly surfaceId: string
  /** Unix time of the hour in seconds. */
  readonly hour: number
  /** Rows that batches have stored, as their log states. */
  readonly logged: number
  /** Rows that were removed on purpose: expired, erased or purged. */
  readonly deleted: number
  /** Rows in the table. */
  readonly present: number
}

/** The rows of one table in a range. */
interface RowBalance {
  readonly logged: number
  readonly deleted: number
  readonly present: number
  /** At most `MAX_DIFFERENCES`. */
  readonly differences: readonly RowDifference[]
}

/** Differences of one table and day that are listed. More of them have one cause. */
const MAX_DIFFERENCES = 1_000

interface Row {
  readonly workspace_id: string
  readonly surface_id: string
  readonly at: number
  readonly logged_rows: string
  readonly deleted_rows: string
  readonly present_rows: string
  readonly is_total: number
}

/**
 * Counts the rows of a table against the log, by workspace, surface and hour of arrival. Reads three narrow columns of the
 * table. ClickHouse joins and compares, so that only differences and one row of totals leave it. Rows that burn a
 * token (`burnToken`) are no records of a workspace, so they do not count.
 */
export async function selectRowBalance(
  client: ClickHouseClient,
  { table, beside, kinds, logged }: AuditedTable,
  { from, to, workspaceId, signal }: AuditRange,
): Promise<RowBalance> {
  const inRange = `received_at >= {from: DateTime} AND received_at < {to: DateTime}
    AND ({workspaceId: String} = '' OR workspace_id = {workspaceId: String})`
  const tables = beside === undefined ? [table] : [table, beside]
  const rows = await selectRows<Row>(client, {
    query: `
      WITH balance AS (
        SELECT workspace_id, surface_id, toUnixTimestamp(hour) AS at,
          sum(l) AS logged_rows, sum(d) AS deleted_rows, sum(p) AS present_rows
        FROM (${tables.map(name => presentIn(name, inRange)).join('')}
          SELECT toString(workspace_id), toString(surface_id), toStartOfHour(received_at), toInt64(sum(${logged})), 0, 0
          FROM ingest_log WHERE ${inRange} AND signal IN {kinds: Array(String)} ${
            table === 'dead_letters' ? 'AND replayed_at = 0' : ''
          }
          GROUP BY ALL
          UNION ALL
          SELECT toString(workspace_id), toString(surface_id), toDateTime(received_hour, 'UTC'), 0, toInt64(sum(rows)), 0
          FROM deleted_rows
          WHERE table_name IN {tables: Array(String)} AND received_hour >= {from: DateTime} AND received_hour < {to: DateTime}
            AND ({workspaceId: String} = '' OR workspace_id = {workspaceId: String})
          GROUP BY ALL
        )
        WHERE NOT startsWith(workspace_id, {burnedPrefix: String})
        GROUP BY workspace_id, surface_id, at
      )
      SELECT * FROM (
        SELECT *, 0 AS is_total FROM balance WHERE logged_rows != deleted_rows + present_rows
        ORDER BY at, workspace_id, surface_id LIMIT ${MAX_DIFFERENCES}
      )
      UNION ALL
      SELECT '', '', 0, sum(logged_rows), sum(deleted_rows), sum(present_rows), 1 FROM balance`,
    params: { from, to, workspaceId, kinds, tables, burnedPrefix: BURNED_PREFIX },
    signal,
  })
  const total = rows.find(({ is_total }) => is_total === 1)
  return {
    logged: Number(total?.logged_rows ?? 0),
    deleted: Number(total?.deleted_rows ?? 0),
    present: Number(total?.present_rows ?? 0),
    differences: rows
      .filter(({ is_total }) => is_total === 0)
      .map(row => ({
        workspaceId: row.workspace_id,
        surfaceId: row.surface_id,
        hour: row.at,
        logged: Number(row.logged_rows),
        deleted: Number(row.deleted_rows),
        present: Number(row.present_rows),
      })),
  }
}

function presentIn(table: string, inRange: string): string {
  return `
          SELECT toString(workspace_id) AS workspace_id, toString(surface_id) AS surface_id,
            toStartOfHour(received_at) AS hour, toInt64(0) AS l, toInt64(0) AS d, toInt64(count()) AS p
          FROM ${table} WHERE ${inRange} AND ${LOGGED_ROWS[table] ?? '1'}
          GROUP BY ALL
          UNION ALL`
}
