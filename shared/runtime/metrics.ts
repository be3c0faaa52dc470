import {
  Counter,
  type CounterConfiguration,
  collectDefaultMetrics,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  type HistogramConfiguration,
  Registry,
} from 'prom-client'

export type { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Makes metrics in one registry of their own: nothing is global, so two processes' routes can share a test or a process. */
export interface Metrics {
  readonly registry: Registry
  counter<L extends string>(configuration: Omit<CounterConfiguration<L>, 'registers'>): Counter<L>
  gauge<L extends string>(configuration: Omit<GaugeConfiguration<L>, 'registers'>): Gauge<L>
  histogram<L extends string>(configuration: Omit<HistogramConfiguration<L>, 'registers'>): Histogram<L>
}

/** Seconds, from half a millisecond to 30 s: the buckets of every latency histogram. */
export const LATENCY_BUCKETS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/** A registry with the default process metrics; `process` (ingest, workers, api) is a label of everything in it. */
export function createMetrics(process: string): Metrics {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    counter: configuration => new Counter({ ...configuration, registers }),
    gauge: configuration => new Gauge({ ...configuration, registers }),
    histogram: configuration => new Histogram({ ...configuration, registers }),
  }
}
