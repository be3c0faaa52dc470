import { type FindingMerges, partsOf } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import {
  type FindingKey,
  findingParams,
  findingsOfTheirVariants,
  isCounting,
  OF_FINDINGS,
  ofFinding,
} from '../attributes/membership.ts'
import { FINDINGS_SETTINGS, ONE_FINDING_SETTINGS } from './findings-settings.ts'

/** A period divided into buckets. Their length is a multiple of five minutes, and both ends are starts of buckets. */
export interface Buckets {
  /** Unix seconds. */
  readonly from: number
  readonly to: number
  readonly bucketSeconds: number
}

/** Counts the occurrences of a finding that were received in each bucket. */
export async function selectFindingCounts(
  client: ClickHouseClient,
  key: FindingKey,
  { from, to, bucketSeconds }: Buckets,
  signal: AbortSignal,
): Promise<number[]> {
  const counts = new Array<number>((to - from) / bucketSeconds).fill(0)
  if (counts.length === 0) return counts
  const time = (name: string) => `toDateTime({${name}: UInt32}, 'UTC')`
  const rows = await selectRows<{ bucket: number; total: string }>(client, {
    query: `
      SELECT toUInt32(intDiv(toUnixTimestamp(received_bucket) - {from: UInt32}, {bucketSeconds: UInt32})) AS bucket,
             sum(occurrence_count) AS total
      FROM finding_buckets
      WHERE ${ofFinding(key)}
        AND received_bucket >= ${time('from')} AND received_bucket < ${time('to')}
        AND day >= toDate(${time('from')}) AND day <= toDate(${time('to')})
      GROUP BY bucket`,
    params: { ...findingParams(key), from, to, bucketSeconds },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  for (const { bucket, total } of rows) counts[bucket] = Number(total)
  return counts
}

/**
 * Counts the occurrences of each of these findings of a workspace that were received in each bucket, in the order of the ids. A
 * variant has at most 288 rows a day, so the page size and the period bound what is read.
 */
export async function selectFindingsCounts(
  client: ClickHouseClient,
  findings: FindingKeys,
  buckets: Buckets,
  signal: AbortSignal,
): Promise<number[][]> {
  const time = (name: string) => `toDateTime({${name}: UInt32}, 'UTC')`
  const query = (merges: FindingMerges) => `
      SELECT id, bucket, sum(ofVariant) AS total
      FROM (
        SELECT variant_id,
               toUInt32(intDiv(toUnixTimestamp(received_bucket) - {from: UInt32}, {bucketSeconds: UInt32})) AS bucket,
               sum(occurrence_count) AS ofVariant
        FROM finding_buckets
        WHERE ${OF_FINDINGS}
          AND received_bucket >= ${time('from')} AND received_bucket < ${time('to')}
          AND day >= toDate(${time('from')}) AND day <= toDate(${time('to')})
        GROUP BY variant_id, bucket) AS counted
      INNER JOIN (${findingsOfTheirVariants(merges)}) AS variants USING (variant_id)
      GROUP BY id, bucket`
  return countInBuckets(client, query, findings, buckets, signal)
}

/** Most occurrences of findings that are counted by when they occurred, of which each is read: about 0.1 s. */
export const OCCURRED_COUNT_MAX = 5_000_000

const RECEIVED = `${OF_FINDINGS} AND received_at >= toDateTime64(toInt64({from: UInt32}) - 300, 3, 'UTC')`

/**
 * Counts the occurrences of each of these findings that occurred in each bucket, in the order of the ids. A time in the future
 * counts as five minutes after the arrival, as in `findings`, so that only arrivals since five minutes before the first bucket are
 * read.
 */
export async function selectOccurredCounts(
  client: ClickHouseClient,
  findings: FindingKeys,
  buckets: Buckets,
  signal: AbortSignal,
): Promise<number[][]> {
  const query = (merges: FindingMerges) => `
      SELECT id, toUInt32(intDiv(occurredAt - {from: UInt32}, {bucketSeconds: UInt32})) AS bucket, count() AS total
      FROM (
        SELECT variant_id,
               intDiv(least(intDiv(occurred_at_unix_nano, 1000000), toUInt64(toUnixTimestamp64Milli(received_at) + 300000)), 1000)
                 AS occurredAt
        FROM exceptions
        WHERE ${RECEIVED} AND ${isCounting(RECEIVED)}) AS occurred
      INNER JOIN (${findingsOfTheirVariants(merges)}) AS variants USING (variant_id)
      WHERE occurredAt >= {from: UInt32} AND occurredAt < {to: UInt32}
      GROUP BY id, bucket`
  return countInBuckets(client, query, findings, buckets, signal)
}

/** Findings of a workspace. */
interface FindingKeys {
  readonly workspaceId: string
  readonly findingIds: readonly string[]
  readonly merges: FindingMerges
}

/** Returns what a query counts of each finding in each bucket, in the order of the ids. */
async function countInBuckets(
  client: ClickHouseClient,
  queryOf: (merges: FindingMerges) => string,
  { workspaceId, findingIds, merges }: FindingKeys,
  { from, to, bucketSeconds }: Buckets,
  signal: AbortSignal,
): Promise<number[][]> {
  const length = (to - from) / bucketSeconds
  const counts = new Map(findingIds.map(id => [id, new Array<number>(length).fill(0)]))
  if (length === 0 || findingIds.length === 0) return [...counts.values()]
  for (const part of partsOf(merges, findingIds)) {
    const rows = await selectRows<{ id: string; bucket: number; total: string }>(client, {
      query: queryOf(part.merges),
      params: { workspaceId, findingIds: part.findingIds, from, to, bucketSeconds },
      signal,
      settings: FINDINGS_SETTINGS,
    })
    for (const { id, bucket, total } of rows) {
      const ofFinding = counts.get(id)
      if (ofFinding !== undefined) ofFinding[bucket] = Number(total)
    }
  }
  return [...counts.values()]
}
