import type { ClickHouseClient } from '../../client.ts'
import { selectRows, type TimeSteps } from '../../select.ts'
import { type LogsFilter, logsCondition, nanosOf, ofTrace, type SearchLimits, searchSettings } from './logs-filter.ts'

/** Number of records of a step and a severity. Those without any are left out. */
export interface LogCount {
  /** Position of the step. */
  readonly step: number
  /** 0 without a severity, then 1 for TRACE to 6 for FATAL, each with four numbers of OTLP. 6 has all higher numbers too. */
  readonly severity: number
  readonly total: string
}

/** Counts the records of a search by step and severity. */
export function selectLogCounts(
  client: ClickHouseClient,
  filter: LogsFilter,
  { startMs, stepMs }: TimeSteps,
  limits: SearchLimits,
  signal: AbortSignal,
): Promise<LogCount[]> {
  const { sql, params } = logsCondition(filter)
  return selectRows(client, {
    query: `
      SELECT toUInt32(intDiv(toUnixTimestamp64Nano(timestamp) - {startNanos: Int64}, {stepNanos: Int64})) AS step,
             toUInt8(least(intDiv(severity_number + 3, 4), 6)) AS severity, count() AS total
      FROM logs WHERE ${sql} GROUP BY step, severity`,
    params: { ...params, startNanos: nanosOf(startMs), stepNanos: nanosOf(stepMs) },
    signal,
    settings: searchSettings(limits),
    ...ofTrace(filter),
  })
}

/** The first and the last time of records, in Unix ms, rounded down. */
interface LogExtent {
  readonly firstMs: number
  readonly lastMs: number
}

/** Returns the extent of the records of a search, or undefined if there are none. */
export async function selectLogExtent(
  client: ClickHouseClient,
  filter: LogsFilter,
  limits: SearchLimits,
  signal: AbortSignal,
): Promise<LogExtent | undefined> {
  const { sql, params } = logsCondition(filter)
  const [row] = await selectRows<{ total: string; firstMs: string; lastMs: string }>(client, {
    query: `
      SELECT count() AS total, intDiv(toUnixTimestamp64Nano(min(timestamp)), 1000000) AS firstMs,
             intDiv(toUnixTimestamp64Nano(max(timestamp)), 1000000) AS lastMs
      FROM logs WHERE ${sql}`,
    params,
    signal,
    settings: searchSettings(limits),
    ...ofTrace(filter),
  })
  return row === undefined || row.total === '0'
    ? undefined
    : { firstMs: Number(row.firstMs), lastMs: Number(row.lastMs) }
}
