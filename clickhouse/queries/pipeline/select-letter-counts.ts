import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { ARRIVED, AS_SENT, HOUR_ARRIVED, type Period, periodParams } from './period.ts'

/** Requests that could not be stored for one reason. */
interface LetterCountRow {
  readonly reason: string
  readonly dead: string
  readonly replayed: string
  readonly discarded: string
}

/** Reasons are those of the service, so there are few. */
const REASONS_MAX = 200

/**
 * Returns the dead letters of a period by the reason of their last refusal, and what was discarded instead. Reads the letters in
 * the order of their key, so that it holds one at a time.
 */
export function selectLetterCounts(
  client: ClickHouseClient,
  period: Period,
  signal: AbortSignal,
): Promise<LetterCountRow[]> {
  return selectRows(client, {
    query: `
      SELECT why AS reason, sum(is_dead) AS dead, sum(is_replayed) AS replayed, sum(is_discarded) AS discarded
      FROM (
        SELECT argMaxIf(toString(d.reason), attempt, outcome = 'dead') AS why,
               toUInt64(argMax(toString(outcome), attempt) = 'dead') AS is_dead, 1 - is_dead AS is_replayed, toUInt64(0) AS is_discarded
        FROM dead_letters AS d WHERE ${ARRIVED}
        GROUP BY workspace_id, received_at, job_id, job_index
        UNION ALL
        SELECT toString(entry.1), 0, 0, entry.2
        FROM (SELECT arrayJoin(arrayZip(mapKeys(discarded), mapValues(discarded))) AS entry FROM ingest_log
              WHERE ${ARRIVED} AND ${AS_SENT} AND notEmpty(discarded))
      )
      GROUP BY reason ORDER BY dead + replayed + discarded DESC, reason LIMIT ${REASONS_MAX}`,
    params: periodParams(period),
    signal,
    settings: { optimize_aggregation_in_order: 1 },
  })
}

/** Returns how many dead letters of the hours of a period were purged. */
export async function selectPurgedLetters(
  client: ClickHouseClient,
  period: Period,
  signal: AbortSignal,
): Promise<number> {
  const [row] = await selectRows<{ purged: string }>(client, {
    query: `
      SELECT sum(deleted_rows.rows) AS purged FROM deleted_rows
      WHERE ${HOUR_ARRIVED} AND table_name = 'dead_letters' AND reason = 'purged'`,
    params: periodParams(period),
    signal,
  })
  return Number(row?.purged ?? 0)
}
