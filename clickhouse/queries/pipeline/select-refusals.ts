import { REFUSED } from '../../../shared/queue/request-counts.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { HOUR_ARRIVED, type Period, periodParams } from './period.ts'

/** Requests of a kind that edges refused with a status. */
interface RefusalRow {
  readonly kind: string
  readonly status: string
  readonly requests: string
}

/** Eight kinds with a few statuses each. */
const ROWS_MAX = 500

/** Returns the refused requests of the hours of a period, by kind and status. */
export function selectRefusals(client: ClickHouseClient, period: Period, signal: AbortSignal): Promise<RefusalRow[]> {
  return selectRows(client, {
    query: `
      SELECT kind, substring(outcome, {refusedLength: UInt8} + 1) AS status, sum(most) AS requests
      FROM (
        SELECT toString(signal) AS kind, toString(outcome) AS outcome, max(requests) AS most
        FROM request_counts WHERE ${HOUR_ARRIVED} AND startsWith(outcome, {refused: String})
        GROUP BY surface_id, kind, outcome, received_hour
      )
      GROUP BY kind, status ORDER BY kind, status LIMIT ${ROWS_MAX}`,
    params: { ...periodParams(period), refused: REFUSED, refusedLength: REFUSED.length },
    signal,
  })
}
