import type { SampleSegment } from '../clickhouse/queries/metrics/select-samples.ts'
import { MINUTE_MS } from '../schemas/units.ts'
import { type EvaluationBudget, emptySeries, type Labels, type Series, type TimeGrid, withoutName } from './vector.ts'

/** Age after which a series has no value without a newer sample. */
export const LOOKBACK_MS = 5 * MINUTE_MS

/** A series with its samples by segments of time, the earliest first. */
export interface SampledSeries {
  readonly labels: Labels
  /** Whether samples count since the one before, and not since a start. */
  readonly isDelta: boolean
  readonly segments: readonly SampleSegment[]
}

/** How the window that ends at each time of a query is divided into segments. */
interface Windows {
  readonly grid: TimeGrid
  /** How far in the past the samples are read, in ms. */
  readonly offsetMs: number
  readonly lengthMs: number
}

/** Returns the number of the step, as segments count them, that ends with the first time of the query. */
export function leadOf({ grid: { stepMs }, lengthMs }: Windows): number {
  return Math.ceil(lengthMs / stepMs)
}

/** Returns the last value of each series in each window, unless it is too old. */
export function lastValues(
  sampled: readonly SampledSeries[],
  windows: Windows,
  budget: EvaluationBudget,
): readonly Series[] {
  const { grid, offsetMs, lengthMs } = windows
  const lead = leadOf(windows)
  return sampled.map(({ labels, segments }) => {
    budget.spend(grid.count)
    const series = emptySeries(labels, grid.count)
    let at = -1
    for (let step = 0; step < grid.count; step++) {
      while (at + 1 < segments.length && (segments[at + 1] as SampleSegment)[0] <= 2 * (step + lead) + 1) at++
      const segment = segments[at]
      if (segment === undefined) continue
      const [, lastMs, last] = segment
      if (lastMs <= grid.startMs + step * grid.stepMs - offsetMs - lengthMs) continue
      series.has[step] = 1
      series.values[step] = last
    }
    return series
  })
}

/** The samples of a window: segments from `begin` to before `end`. */
interface Window {
  readonly segments: readonly SampleSegment[]
  readonly begin: number
  readonly end: number
  readonly endMs: number
  readonly lengthMs: number
}

/** Computes functions of windows for each series and time. */
export function overTime(
  name: string,
  sampled: readonly SampledSeries[],
  windows: Windows,
  budget: EvaluationBudget,
): readonly Series[] {
  const { grid, offsetMs, lengthMs } = windows
  const lead = leadOf(windows)
  const before = Math.floor(lengthMs / grid.stepMs)
  return sampled.map(({ labels, isDelta, segments }) => {
    const compute = functionOf(name, isDelta, segments)
    const series = emptySeries(name === 'last_over_time' ? labels : withoutName(labels), grid.count)
    let begin = 0
    let end = 0
    for (let step = 0; step < grid.count; step++) {
      const last = 2 * (step + lead) + 1
      while (end < segments.length && (segments[end] as SampleSegment)[0] <= last) end++
      while (begin < end && (segments[begin] as SampleSegment)[0] < last - 2 * before) begin++
      budget.spend(1 + (compute.isConstantTime ? 0 : end - begin))
      if (begin === end) continue
      const endMs = grid.startMs + step * grid.stepMs - offsetMs
      const value = compute.of({ segments, begin, end, endMs, lengthMs })
      if (value === undefined) continue
      series.has[step] = 1
      series.values[step] = value
    }
    return series
  })
}

/** A function of windows. */
interface WindowFunction {
  readonly of: (window: Window) => number | undefined
  /** Whether it does not look at each segment of the window. */
  readonly isConstantTime: boolean
}

function functionOf(name: string, isDelta: boolean, segments: readonly SampleSegment[]): WindowFunction {
  switch (name) {
    case 'rate':
    case 'increase': {
      const perSecond = name === 'rate'
      if (isDelta) return eachSegment(window => sumOf(window) / (perSecond ? window.lengthMs / 1_000 : 1))
      const resets = cumulativeResets(segments)
      return { isConstantTime: true, of: window => extrapolated(window, { resets, perSecond }) }
    }
    case 'delta':
      return eachSegment(window => extrapolated(window, { resets: undefined, perSecond: false }))
    case 'avg_over_time':
      return eachSegment(window => sumOf(window) / countOf(window))
    case 'count_over_time':
      return eachSegment(countOf)
    case 'last_over_time':
      return { isConstantTime: true, of: ({ segments: all, end }) => (all[end - 1] as SampleSegment)[2] }
    case 'max_over_time':
      return eachSegment(window => reduce(window, (most, segment) => Math.max(most, segment[9]), -Infinity))
    case 'min_over_time':
      return eachSegment(window => reduce(window, (least, segment) => Math.min(least, segment[8]), Infinity))
    case 'present_over_time':
      return { isConstantTime: true, of: () => 1 }
    case 'sum_over_time':
      return eachSegment(sumOf)
    default:
      throw new TypeError(`no function of a range is called ${name}`)
  }
}

function eachSegment(of: WindowFunction['of']): WindowFunction {
  return { of, isConstantTime: false }
}

function reduce({ segments, begin, end }: Window, add: (sum: number, segment: SampleSegment) => number, first: number) {
  let sum = first
  for (let i = begin; i < end; i++) sum = add(sum, segments[i] as SampleSegment)
  return sum
}

function sumOf(window: Window): number {
  return reduce(window, (sum, segment) => sum + segment[7], 0)
}

function countOf(window: Window): number {
  return reduce(window, (sum, segment) => sum + segment[3], 0)
}

/** Sums of the values before each decrease of a series: up to the first sample of each segment, and up to its last one. */
interface CumulativeResets {
  readonly toFirst: Float64Array
  readonly toLast: Float64Array
  readonly counts: Float64Array
}

function cumulativeResets(segments: readonly SampleSegment[]): CumulativeResets {
  const toFirst = new Float64Array(segments.length)
  const toLast = new Float64Array(segments.length)
  const counts = new Float64Array(segments.length + 1)
  let resets = 0
  let before = Number.NEGATIVE_INFINITY
  for (const [i, [, , last, count, , first, within]] of segments.entries()) {
    if (first < before) resets += before
    toFirst[i] = resets
    resets += within
    toLast[i] = resets
    counts[i + 1] = (counts[i] as number) + count
    before = last
  }
  return { toFirst, toLast, counts }
}

/** A gap at an end of a window of more than this many times the mean interval of samples is not extrapolated over. */
const EXTRAPOLATED_INTERVALS = 1.1

/**
 * Returns the change in a window as Prometheus computes it (promql/functions.go, extrapolatedRate): the change between the
 * first and the last sample, extrapolated to the ends of the window, but not below zero for a counter.
 */
function extrapolated(
  window: Window,
  { resets, perSecond }: { resets: CumulativeResets | undefined; perSecond: boolean },
): number | undefined {
  const { segments, begin, end, endMs, lengthMs } = window
  const [, , , , firstMs, first] = segments[begin] as SampleSegment
  const [, lastMs, last] = segments[end - 1] as SampleSegment
  const samples = resets ? (resets.counts[end] as number) - (resets.counts[begin] as number) : countOf(window)
  if (samples < 2) return undefined
  const ofResets = resets ? (resets.toLast[end - 1] as number) - (resets.toFirst[begin] as number) : 0
  const change = last - first + ofResets
  const sampledSeconds = (lastMs - firstMs) / 1_000
  const meanInterval = sampledSeconds / (samples - 1)
  const threshold = meanInterval * EXTRAPOLATED_INTERVALS
  let toStart = (firstMs - (endMs - lengthMs)) / 1_000
  let toEnd = (endMs - lastMs) / 1_000
  if (toStart >= threshold) toStart = meanInterval / 2
  if (resets && change > 0 && first >= 0) toStart = Math.min(toStart, sampledSeconds * (first / change))
  if (toEnd >= threshold) toEnd = meanInterval / 2
  const whole = (change * (sampledSeconds + toStart + toEnd)) / sampledSeconds
  return perSecond ? whole / (lengthMs / 1_000) : whole
}
