import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { durationQuantile } from '../services/duration-quantiles.ts'
import { IS_ENTRY } from '../services/select-span-rates.ts'
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

/** What is measured of the calls that services received: the share of those that failed in percent, or their p95 in ms. */
interface MeasuredCalls extends MeasuredTime, MeasuredLimits {
  readonly conditions: Pick<MeasuredConditions, 'services' | 'environments'>
  readonly of: keyof typeof VALUES
  readonly atLeast: number
  readonly threshold: number
}

/** A service in an environment whose value has reached the threshold at an instant. */
interface MeasuredCallsRow {
  readonly at: number
  readonly service: string
  readonly environment: string
  readonly value: number
}

const VALUES = { errors: '100 * errors / calls', p95: `${durationQuantile('buckets', 0.95)} / 1e6` } as const

/** Returns the services that received the least number of calls or more, and whose value has reached the threshold. */
export function selectMeasuredCalls(
  client: ClickHouseClient,
  { conditions, of, ...calls }: MeasuredCalls,
  signal: AbortSignal,
): Promise<MeasuredCallsRow[]> {
  // Durations are maps, which only one of the two needs.
  const durations = of === 'p95' ? ', sumMap(durations) AS buckets' : ''
  return selectRows(client, {
    query: `
      SELECT at, service, environmentName AS environment, ${VALUES[of]} AS value
      FROM (
        SELECT ${instantsOf('bucket')} AS at, service, environmentName, sum(received) AS calls, sum(failed) AS errors
               ${of === 'p95' ? ', sumMap(bucketsOf) AS buckets' : ''}
        FROM (
          SELECT toString(service_name) AS service, toString(environment) AS environmentName,
                 ${bucketAt('toUnixTimestamp(minute)')} AS bucket, sum(span_stats.spans) AS received,
                 sumIf(span_stats.spans, status_code = 2) AS failed${durations.replace('buckets', 'bucketsOf')}
          FROM span_stats
          WHERE workspace_id = {workspaceId: String} AND ${IS_ENTRY}
            AND received_at >= toStartOfDay(fromUnixTimestamp({fromSeconds: UInt32}), 'UTC')
            AND minute >= fromUnixTimestamp({fromSeconds: UInt32}) AND minute < fromUnixTimestamp({lastSeconds: UInt32})
            ${conditionsOn({ services: 'service_name', environments: 'environment' }, conditions)}
          GROUP BY service, environmentName, bucket)
        GROUP BY at, service, environmentName HAVING calls >= {atLeast: UInt64})
      WHERE value >= {threshold: Float64}
      ${LARGEST_VALUES}`,
    params: { ...calls, ...conditions, ...timeParams(calls) },
    signal,
    settings: MEASURE_SETTINGS,
  })
}
