import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { findingsOfVariants, MERGES_SETTINGS } from '../attributes/membership.ts'
import {
  bucketAt,
  conditionsOn,
  instantsOf,
  LARGEST_VALUES,
  MEASURE_SETTINGS,
  type MeasuredConditions,
  type MeasuredLimits,
  type MeasuredTime,
  timeParams,
} from './measured-time.ts'

/** The people who are counted. */
interface Spreading extends MeasuredTime, MeasuredLimits {
  readonly merges: FindingMerges
  readonly conditions: MeasuredConditions
  /** The least number of people of a finding. */
  readonly people: number
}

/** A finding that concerned many people in the time before an instant. */
interface SpreadingRow {
  readonly at: number
  readonly id: string
  readonly value: string
}

/**
 * Returns the findings that occurred in the sessions of the least number of people or more. A person is an identifier: the one that
 * was received last of a session. Sessions without one do not count.
 */
export function selectSpreading(
  client: ClickHouseClient,
  { merges, conditions, ...spreading }: Spreading,
  signal: AbortSignal,
): Promise<SpreadingRow[]> {
  const columns = {
    ...{ surfaces: 'surface_id', services: 'service_name', environments: 'environment' },
    ...{ releases: 'service_version', types: 'exceptions.type' },
  }
  const received = `workspace_id = {workspaceId: String} AND session_id != ''
    AND received_at >= toDateTime({fromSeconds: UInt32}, 'UTC') AND received_at < toDateTime({lastSeconds: UInt32}, 'UTC')
    ${conditionsOn(columns, conditions)}`
  return selectRows(client, {
    query: `
      SELECT at, id, uniqExact(person) AS value
      FROM (
        SELECT ${instantsOf('bucket')} AS at, id, person
        FROM (
          SELECT DISTINCT id, person, bucket
          FROM (
            SELECT variant_id, session_id, ${bucketAt('toUnixTimestamp(received_at)')} AS bucket
            FROM exceptions WHERE ${received} GROUP BY variant_id, session_id, bucket) AS occurred
          INNER JOIN (
            SELECT session_id, argMax(identifier, tuple(received_at, identifier, source_type, name, email)) AS person
            FROM session_identities
            WHERE workspace_id = {workspaceId: String} AND session_id IN (SELECT session_id FROM exceptions WHERE ${received})
            GROUP BY session_id HAVING person != '') AS identified USING (session_id)
          INNER JOIN (${findingsOfVariants(`SELECT variant_id FROM exceptions WHERE ${received}`, merges)}) AS variants
            USING (variant_id)))
      GROUP BY at, id HAVING value >= {people: UInt64}
      ${LARGEST_VALUES}`,
    params: { ...spreading, ...conditions, ...timeParams(spreading) },
    signal,
    settings: { ...MEASURE_SETTINGS, ...MERGES_SETTINGS },
  })
}
