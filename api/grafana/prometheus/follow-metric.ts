import type { FollowPast } from '../../../alerts/trying/follow-past.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { PromqlError, TOO_MANY_SAMPLES } from '../../../promql/promql-error.ts'
import type { Occasion } from '../../../schemas/records/alerts.ts'
import { isMemoryError, PermanentError } from '../../../shared/runtime/errors.ts'
import type { MetricReads } from '../../metrics/resource.ts'
import type { ReadThreads } from '../threads/read-threads.ts'

interface Deps {
  readonly clickhouse: ClickHouseClient
  readonly metricReads: MetricReads
  readonly threads: Pick<ReadThreads, 'run'>
}

/** Returns a function that follows the expressions of rules in a thread, with the shares of queries of PromQL. */
export function createFollowMetric({ clickhouse, metricReads, threads }: Deps): FollowPast {
  return (of, signal) => {
    const follow = async () => {
      try {
        const bytes = await threads.run('followExpression', of, { clickhouse, signal })
        return JSON.parse(Buffer.from(bytes ?? []).toString()) as Occasion[]
      } catch (error) {
        const refusal = isMemoryError(error) ? new PromqlError(TOO_MANY_SAMPLES, 'execution') : error
        if (!(refusal instanceof PromqlError)) throw error
        throw new PermanentError(`the expression cannot be evaluated: ${refusal.message}`, { cause: refusal })
      }
    }
    return metricReads.run(of.workspaceId, follow, signal)
  }
}
