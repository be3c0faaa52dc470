import { selectMeasuredCalls } from '../../clickhouse/queries/alerts/select-measured-calls.ts'
import { measuredTime } from './measured-time.ts'
import type { Measure, Reading } from './reading.ts'

/** Measures the share of the calls that a service received and that failed, by environment. */
export const measureErrors: Measure = (deps, of, signal) => {
  const { errors } = of.rule
  if (errors === undefined) return Promise.resolve([])
  const { percent: threshold, ...rest } = errors
  return measureCalls(deps, of, { ...rest, threshold, of: 'errors', what: 'share of failed calls', unit: '%' }, signal)
}

/** Measures the 95th percentile of the durations of the calls that a service received, by environment. */
export const measureLatency: Measure = (deps, of, signal) => {
  const { latency } = of.rule
  if (latency === undefined) return Promise.resolve([])
  const { p95Ms: threshold, ...rest } = latency
  return measureCalls(deps, of, { ...rest, threshold, of: 'p95', what: 'p95 of the duration', unit: 'ms' }, signal)
}

/** A value of the calls that a service received. */
interface CallsMeasure {
  readonly of: 'errors' | 'p95'
  readonly what: string
  readonly unit: string
  readonly minutes: number
  readonly atLeast: number
  readonly threshold: number
}

async function measureCalls(
  { clickhouse }: Parameters<Measure>[0],
  { rule: { services, environments }, ...of }: Parameters<Measure>[1],
  { what, unit, minutes, threshold, ...measured }: CallsMeasure,
  signal: AbortSignal,
): Promise<Reading[]> {
  const calls = { ...measuredTime(of, minutes), ...measured, threshold, conditions: { services, environments } }
  const rows = await selectMeasuredCalls(clickhouse, calls, signal)
  return rows.map(({ at, service, environment, value }) => ({
    atMs: at * 1_000,
    subject: { service, ...(environment !== '' && { environment }) },
    measured: { what, value, threshold, unit, minutes },
  }))
}
