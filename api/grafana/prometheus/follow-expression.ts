import { measureMetric } from '../../../alerts/measuring/measure-metric.ts'
import { followPast, type MeasuredPast } from '../../../alerts/trying/follow-past.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { PromqlError } from '../../../promql/promql-error.ts'

/** Follows the expression of a rule over a time, and returns the occasions as JSON. Throws a PromqlError. */
export async function followExpression(clickhouse: ClickHouseClient, of: MeasuredPast): Promise<Uint8Array> {
  // The main thread ends the reads.
  const { signal } = new AbortController()
  try {
    return Buffer.from(JSON.stringify(await followPast(measureMetric, { clickhouse }, of, signal)))
  } catch (error) {
    // The only refusal that a thread can name.
    throw error instanceof Error && error.cause instanceof PromqlError ? error.cause : error
  }
}
