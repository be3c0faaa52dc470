import { clickHouseText, isClickHouseCode, OVER_LIMIT_CODES } from '../../clickhouse/client.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { GuardedRequest } from '../http/guarded-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import type { Resource } from '../http/resource.ts'

/** Metrics and their series. */
export const METRICS: Resource = {
  notFound: {
    code: 'NOT_FOUND',
    message: 'there is no such metric with points in the range, or they are no longer retained',
  },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'metrics are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** A query would read or return more than it may. */
const LIMIT_CODES = [OVER_LIMIT_CODES.rowsRead, OVER_LIMIT_CODES.bytesRead, OVER_LIMIT_CODES.result]

/** Text of the error about memory if the query alone needs too much, and not all queries of the server together. */
const OF_QUERY = /Query memory limit|\(for query\)/

function isOverLimit(error: unknown): boolean {
  if (LIMIT_CODES.some(code => isClickHouseCode(error, code))) return true
  return isClickHouseCode(error, OVER_LIMIT_CODES.memory) && OF_QUERY.test(clickHouseText(error) ?? '')
}

/** Slots for reads of metrics. */
export type MetricReads = Pick<FairSlots, 'run'>

/** Runs a read when the workspace has a turn. Refuses it with `advice` if it is over the limits of its queries. */
export async function readWithinLimits<T>(
  metricReads: MetricReads,
  { workspaceId, deadline }: Pick<GuardedRequest<never>, 'workspaceId' | 'deadline'>,
  advice: string,
  read: () => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  try {
    return await metricReads.run(workspaceId, read, deadline)
  } catch (error) {
    if (!isOverLimit(error)) throw error
    return invalid(`from and to contain too many points: ${advice}`)
  }
}
