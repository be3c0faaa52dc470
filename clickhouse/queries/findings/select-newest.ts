import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type FindingKey, findingParams, isCounting, ofFinding } from '../attributes/membership.ts'
import { ONE_FINDING_SETTINGS } from './findings-settings.ts'

/** Occurrences of a finding by the time of their arrival. */
export interface OccurrenceRange extends FindingKey {
  /** Unix ms, inclusive. */
  readonly fromMs: number
  /** Unix ms, exclusive. */
  readonly toMs: number
}

/** Length of the buckets of `finding_buckets`. */
export const BUCKET_MS = 300_000

/** Returns the condition on the rows of `exceptions` that are occurrences of a finding, received from {fromMs} to {toMs}. */
export function ofOccurrences(key: FindingKey): string {
  const received = `${ofFinding(key)} AND received_at >= fromUnixTimestamp64Milli({fromMs: Int64}, 'UTC')
    AND received_at < fromUnixTimestamp64Milli({toMs: Int64}, 'UTC')`
  return `${received} AND ${isCounting(received)}`
}

/**
 * Returns the start of a bucket, in Unix ms, since which a finding has this number of occurrences, or `fromMs`. Reads the buckets
 * of few days: those since the day before which there are enough. Buckets also count what was deleted later.
 */
export async function selectStartOfNewest(
  client: ClickHouseClient,
  range: OccurrenceRange,
  wanted: number,
  signal: AbortSignal,
): Promise<number> {
  const time = (name: string) => `toDateTime({${name}: UInt32}, 'UTC')`
  const { fromMs, toMs } = range
  const condition = ofFinding(range)
  const [row] = await selectRows<{ startS: string }>(client, {
    query: `
      WITH (SELECT maxIf(day, running >= {wanted: UInt64}) FROM (
           SELECT day, sum(sum(occurrence_count)) OVER (ORDER BY day DESC ROWS UNBOUNDED PRECEDING) AS running
           FROM findings WHERE ${condition} AND day < toDate(${time('to')})
           GROUP BY day)) AS firstDay
      SELECT maxIf(bucket, running >= {wanted: UInt64}) AS startS
      FROM (
        SELECT toUInt64(toUnixTimestamp(received_bucket)) AS bucket,
               sum(sum(occurrence_count)) OVER (ORDER BY bucket DESC ROWS UNBOUNDED PRECEDING) AS running
        FROM finding_buckets
        WHERE ${condition}
          AND day >= firstDay AND day <= toDate(${time('to')}) AND received_bucket < ${time('to')}
        GROUP BY received_bucket)`,
    params: { ...findingParams(range), wanted, to: Math.ceil(toMs / 1_000) },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return Math.max(Number(row?.startS ?? 0) * 1_000, fromMs)
}
