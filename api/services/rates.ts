import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type RatesFilter,
  type RatesRow,
  type ServiceRow,
  selectServices,
} from '../../clickhouse/queries/services/select-span-rates.ts'
import type { SpanRates } from '../../schemas/http/services.ts'

/** The rates of a range without spans. */
export const NO_SPANS: RatesRow = { count: '0', errors: '0', durationSum: '0', p50: 0, p95: 0, p99: 0 }

/** Returns rates as responses have them. */
export function presentRates({ count, errors, durationSum, p50, p95, p99 }: RatesRow): SpanRates {
  const spans = Number(count)
  const average = milliseconds(Number(durationSum) / spans)
  const quantiles = { p50: milliseconds(p50), p95: milliseconds(p95), p99: milliseconds(p99) }
  return { spans, errors: Number(errors), durationMs: spans === 0 ? null : { average, ...quantiles } }
}

/** Converts nanoseconds, which a quantile does not have exactly, to milliseconds with four digits. */
export function milliseconds(nanoseconds: number): number {
  return Number((nanoseconds / 1e6).toPrecision(4))
}

/** Returns the rates of each service, those with most spans first: of its entries, if there are any. */
export async function selectRates(clickhouse: ClickHouseClient, filter: RatesFilter, signal: AbortSignal) {
  const chosen = new Map<string, ServiceRow>()
  for (const row of await selectServices(clickhouse, filter, signal)) {
    if (!chosen.has(row.serviceName)) chosen.set(row.serviceName, row)
  }
  return [...chosen.values()].sort((a, b) => Number(b.count) - Number(a.count))
}
