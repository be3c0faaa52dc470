import { REFUSED } from '../../../shared/queue/request-counts.ts'
import type { ClickHouseClient } from '../../client.ts'
import { COUNTED_REQUESTS } from '../../counted-requests.ts'
import { selectRows } from '../../select.ts'
import { ARRIVED, AS_SENT, HOUR_ARRIVED, type Period, periodParams } from './period.ts'

/** Requests of a kind that arrived in a step. Steps without any are left out. 64-bit numbers are decimal text. */
export interface RateRow {
  readonly kind: string
  /** Position of the step. */
  readonly step: number
  readonly requests: string
  readonly records: string
  readonly bytes: string
  readonly deadLettered: string
}

/** Returns the requests of a period that workers have processed, by kind and step. Reads a row for each job and surface. */
export function selectRates(client: ClickHouseClient, period: Period, signal: AbortSignal): Promise<RateRow[]> {
  return selectRows(client, {
    query: `
      SELECT toString(signal) AS kind,
             toUInt32(intDiv(toUnixTimestamp64Milli(received_at) - {startMs: Int64}, {stepMs: Int64})) AS step,
             sum(payloads) AS requests, sum(l.rows) AS records, sum(l.bytes) AS bytes,
             sum(arraySum(mapValues(l.dead_lettered))) AS deadLettered
      FROM ingest_log AS l WHERE ${ARRIVED} AND ${AS_SENT}
      GROUP BY kind, step ORDER BY kind, step`,
    params: periodParams(period),
    signal,
  })
}

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
        SELECT toString(signal) AS kind, toString(outcome) AS outcome, ${COUNTED_REQUESTS} AS most
        FROM request_counts WHERE ${HOUR_ARRIVED} AND startsWith(outcome, {refused: String})
        GROUP BY surface_id, kind, outcome, received_hour
      )
      GROUP BY kind, status ORDER BY kind, status LIMIT ${ROWS_MAX}`,
    params: { ...periodParams(period), refused: REFUSED, refusedLength: REFUSED.length },
    signal,
  })
}
