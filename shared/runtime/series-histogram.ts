import type { Histogram, Registry } from 'prom-client'

/** The counts of one series of a histogram. */
export class HistogramSeries {
  readonly #bounds: Float64Array
  /** Observations by the first bound that is not below them, then those above all bounds, then the sum of all. */
  readonly counts: Float64Array

  constructor(bounds: Float64Array) {
    this.#bounds = bounds
    this.counts = new Float64Array(bounds.length + 2)
  }

  /** Counts a value. Allocates nothing. */
  observe(value: number): void {
    const bounds = this.#bounds
    const { counts } = this
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at++
    counts[at] = (counts[at] as number) + 1
    counts[bounds.length + 1] = (counts[bounds.length + 1] as number) + value
  }
}

/**
 * A histogram for values that are observed for every request. Its series are looked up once by the caller and counted in arrays.
 * prom-client hashes the labels and looks buckets up by name at every value: 0.8 µs for a counter and a histogram.
 */
export class SeriesHistogram {
  readonly name: string
  readonly help: string
  readonly type = 'histogram'
  readonly #bounds: Float64Array
  readonly #series: { readonly labels: Readonly<Record<string, string>>; readonly counts: HistogramSeries }[] = []

  constructor(
    { name, help, buckets }: { readonly name: string; readonly help: string; readonly buckets: readonly number[] },
    registry: Registry,
  ) {
    this.name = name
    this.help = help
    this.#bounds = Float64Array.from(buckets)
    // A registry uses only `name`, `get` and `reset` of a metric.
    registry.registerMetric(this as unknown as Histogram)
  }

  /** Adds the series with these labels. To be called once for each, because it looks for none. */
  series(labels: Readonly<Record<string, string>>): HistogramSeries {
    const counts = new HistogramSeries(this.#bounds)
    this.#series.push({ labels, counts })
    return counts
  }

  /** Returns the values as the registry shows them. */
  async get() {
    const { name, help, type } = this
    const values = this.#series.flatMap(({ labels, counts: { counts } }) => {
      let total = 0
      const buckets = [...this.#bounds, '+Inf'].map((le, i) => {
        total += counts[i] as number
        return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total }
      })
      const sum = { metricName: `${name}_sum`, labels, value: counts.at(-1) as number }
      return [...buckets, sum, { metricName: `${name}_count`, labels, value: total }]
    })
    return { name, help, type, values, aggregator: 'sum' }
  }

  /** Sets all counts to zero. */
  reset(): void {
    for (const { counts } of this.#series) counts.counts.fill(0)
  }
}
