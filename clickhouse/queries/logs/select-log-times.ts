import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import {
  type LogsFilter,
  logsCondition,
  ofTrace,
  type SearchLimits,
  searchSettings,
  timestampOf,
} from './logs-filter.ts'

/** A part of the time of a search, in Unix nanoseconds. Undefined is without a bound. */
interface SearchWindow {
  /** Inclusive. */
  readonly since: bigint | undefined
  /** Exclusive. */
  readonly before: bigint | undefined
  /** Most records. */
  readonly limit: number
}

/** Returns the times of the newest records in a window, in Unix nanoseconds, the newest first. It opens no wide column. */
export async function selectLogTimes(
  client: ClickHouseClient,
  filter: LogsFilter,
  { since, before, limit }: SearchWindow,
  limits: SearchLimits,
  signal: AbortSignal,
): Promise<string[]> {
  const { sql, params } = logsCondition(filter)
  const window = [
    ...(since === undefined ? [] : [` AND timestamp >= ${timestampOf('since')}`]),
    ...(before === undefined ? [] : [` AND timestamp < ${timestampOf('before')}`]),
  ].join('')
  const rows = await selectRows<{ nanos: string }>(client, {
    query: `
      SELECT toUnixTimestamp64Nano(timestamp) AS nanos FROM logs WHERE ${sql}${window}
      ORDER BY timestamp DESC LIMIT {limit: UInt32}`,
    params: { ...params, since, before, limit },
    signal,
    settings: searchSettings(limits),
    ...ofTrace(filter),
  })
  return rows.map(({ nanos }) => nanos)
}
