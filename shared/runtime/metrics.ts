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
import { BUILD } from './build-info.ts'
import { SeriesHistogram } from './series-histogram.ts'

export type { Registry } from 'prom-client'

/** Creates metrics in its own registry. Nothing is global, so that a test or a process can run the routes of two processes. */
export interface Metrics {
  readonly registry: Registry
  counter<L extends string>(configuration: Omit<CounterConfiguration<L>, 'registers'>): Counter<L>
  gauge<L extends string>(configuration: Omit<GaugeConfiguration<L>, 'registers'>): Gauge<L>
  histogram<L extends string>(configuration: Omit<HistogramConfiguration<L>, 'registers'>): Histogram<L>
  /** Creates a histogram for values that are observed for every request or commit. */
  seriesHistogram(configuration: ConstructorParameters<typeof SeriesHistogram>[0]): SeriesHistogram
}

/** Buckets of every latency histogram, from half a millisecond to 30 seconds. */
export const LATENCY_BUCKETS_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/**
 * Time between two looks at the lag of the event loop. Each wakes the process: with the default of 10 ms, an idle one woke three
 * to four times as often.
 */
const LAG_PRECISION_MS = 50

/** Creates a registry with the default process metrics. `process` (ingest, workers, api) is a label of every series. */
export function createMetrics(process: string): Metrics {
  const registry = new Registry()
  registry.setDefaultLabels({ process })
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_PRECISION_MS })
  const registers = [registry]
  const build = { name: 'penstock_build_info', help: 'Always 1: version and commit of what runs.' }
  new Gauge({ ...build, labelNames: ['version', 'commit'], registers }).set(BUILD, 1)
  return {
    registry,
    counter: configuration => new Counter({ ...configuration, registers }),
    gauge: configuration => new Gauge({ ...configuration, registers }),
    histogram: configuration => new Histogram({ ...configuration, registers }),
    seriesHistogram: configuration => new SeriesHistogram(configuration, registry),
  }
}
