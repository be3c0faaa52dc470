import { type FindingMerges, partsOf } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import {
  findingsOfTheirVariants,
  findingsOfVariants,
  isCounting,
  MERGES_SETTINGS,
  OF_FINDINGS,
} from '../attributes/membership.ts'
import { conditionsOn, MEASURE_SETTINGS, type MeasuredConditions } from './measured-time.ts'

/** The occurrences of findings that are counted, in five minutes of the clock. Unix seconds, the end excluded. */
interface CountedOccurrences {
  readonly workspaceId: string
  readonly merges: FindingMerges
  readonly conditions: MeasuredConditions
  readonly fromSeconds: number
  readonly toSeconds: number
}

/** Five minutes in which a finding occurred often. */
interface BusyMinutesRow {
  readonly id: string
  /** Their beginning in Unix seconds. */
  readonly bucket: number
  readonly occurrences: string
}

/** A longer time has more arrivals than the workspace has variants. */
const RECENT_SECONDS = 3_600
const OF_WORKSPACE = 'workspace_id = {workspaceId: String}'
const RECEIVED = `received_at >= toDateTime({fromSeconds: UInt32}, 'UTC') AND received_at < toDateTime({toSeconds: UInt32}, 'UTC')`
const BUCKETS = `day >= toDate(toDateTime({fromSeconds: UInt32}, 'UTC'), 'UTC') AND day <= toDate(toDateTime({toSeconds: UInt32}, 'UTC'), 'UTC')
  AND received_bucket >= toDateTime({fromSeconds: UInt32}, 'UTC') AND received_bucket < toDateTime({toSeconds: UInt32}, 'UTC')`

/** Returns the findings that occurred `atLeast` times in five minutes, with all such five minutes, the most frequent first. */
export function selectBusyMinutes(
  client: ClickHouseClient,
  { merges, conditions, ...counted }: CountedOccurrences & { readonly atLeast: number; readonly limit: number },
  signal: AbortSignal,
): Promise<BusyMinutesRow[]> {
  const isRecent = counted.toSeconds - counted.fromSeconds <= RECENT_SECONDS
  const arrived = `SELECT variant_id FROM finding_arrivals
    WHERE arrived >= toDateTime({fromSeconds: UInt32}, 'UTC') AND arrived < toDateTime({toSeconds: UInt32}, 'UTC') AND ${OF_WORKSPACE}`
  const variants = isRecent ? `${OF_WORKSPACE} AND variant_id IN (${arrived})` : OF_WORKSPACE
  const occurrences = occurrencesOf(variants, conditions)
  return selectRows(client, {
    query: `
      SELECT id, bucket, sum(ofVariant) AS occurrences
      FROM (${occurrences}) AS counted
      INNER JOIN (${findingsOfVariants(`SELECT variant_id FROM (${occurrences})`, merges)}) AS variants USING (variant_id)
      GROUP BY id, bucket HAVING occurrences >= {atLeast: UInt64} ORDER BY occurrences DESC, id, bucket LIMIT {limit: UInt32}`,
    params: { ...counted, ...conditions },
    signal,
    settings: { ...MEASURE_SETTINGS, ...MERGES_SETTINGS },
  })
}

/** The most occurrences of a finding in five minutes of an hour. */
interface BusiestMinutesRow {
  readonly id: string
  /** Hours since 1970. */
  readonly hour: number
  readonly busiest: string
}

/** Returns how often findings occurred in the busiest five minutes of hours, which are in hours since 1970. */
export async function selectBusiestMinutes(
  client: ClickHouseClient,
  { merges, conditions, findingIds, ...counted }: CountedOccurrences & BusiestHours,
  signal: AbortSignal,
): Promise<BusiestMinutesRow[]> {
  const rows: BusiestMinutesRow[] = []
  if (findingIds.length === 0) return rows
  for (const part of partsOf(merges, findingIds)) {
    const occurrences = occurrencesOf(OF_FINDINGS, conditions, 'received_bucket')
    const read = await selectRows<BusiestMinutesRow>(client, {
      query: `
        SELECT id, toUInt32(intDiv(bucket, 3600)) AS hour, max(ofFinding) AS busiest
        FROM (
          SELECT id, bucket, sum(ofVariant) AS ofFinding
          FROM (${occurrences}) AS counted
          INNER JOIN (${findingsOfTheirVariants(part.merges)}) AS variants USING (variant_id)
          GROUP BY id, bucket)
        GROUP BY id, hour`,
      params: { ...counted, ...conditions, findingIds: part.findingIds },
      signal,
      settings: { ...MEASURE_SETTINGS, ...MERGES_SETTINGS },
    })
    for (const row of read) rows.push(row)
  }
  return rows
}

interface BusiestHours {
  readonly findingIds: readonly string[]
  readonly hours: readonly number[]
}

/**
 * Returns the query of occurrences by variant and five minutes. All exceptions of a variant have one surface, service, version and
 * type. They may have several environments: then exceptions are read, and not what is counted of them.
 */
function occurrencesOf(variants: string, conditions: MeasuredConditions, hoursOf?: 'received_bucket'): string {
  const ofVariant = conditionsOn(
    { surfaces: 'surface_id', services: 'service_name', releases: 'service_version', types: 'latest.type' },
    conditions,
  )
  const chosen = ofVariant && ` AND variant_id IN (SELECT variant_id FROM findings WHERE ${OF_WORKSPACE}${ofVariant})`
  const where = `${variants}${chosen}`
  const inHours = (time: string) =>
    hoursOf ? ` AND intDiv(toUnixTimestamp(${time}), 3600) IN {hours: Array(UInt32)}` : ''
  if (conditions.environments === undefined)
    return `SELECT variant_id, toUnixTimestamp(received_bucket) AS bucket, sum(occurrence_count) AS ofVariant
      FROM finding_buckets WHERE ${where} AND ${BUCKETS}${inHours('received_bucket')} GROUP BY variant_id, bucket`
  const received = `${where} AND ${RECEIVED}${inHours('received_at')}`
  return `SELECT variant_id, toUnixTimestamp(toStartOfFiveMinutes(received_at)) AS bucket, count() AS ofVariant
    FROM exceptions WHERE ${received} AND environment IN {environments: Array(String)} AND ${isCounting(`${OF_WORKSPACE} AND ${RECEIVED}`)}
    GROUP BY variant_id, bucket`
}
