import type { Percentiles } from '../load/latency-histogram.ts'
import type { Marker } from '../measure/marker-sender.ts'
import type { Freshness, LoadedFreshness } from '../measure/measure-freshness.ts'
import { SPANS } from '../measure/measure-stored.ts'
import { type Results, rowsOf, samplesOf, succeeded } from '../support/rounds.ts'
import type { Row } from '../support/scenario.ts'
import { summarize } from './statistics.ts'

const QUANTILES = [
  ['p50', 0.5],
  ['p99', 0.99],
  ['p99.9', 0.999],
] as const

/** Returns the row of the pipeline's capacity. */
export function capacityRow(spansPerSecond: readonly number[]): Row {
  return { name: 'capacity', unit: 'spans/s', samples: spansPerSecond }
}

/** Returns the rows at a share of capacity, with one sample a round. */
export function levelRows(share: number, results: Results<LoadedFreshness>): Row[] {
  const at = `${Math.round(share * 100)} % of capacity`
  return rowsOf(results, () =>
    QUANTILES.map(([title, quantile]): Row => {
      const row = {
        name: `${title} at ${at}`,
        unit: 'ms',
        samples: samplesOf(results, ({ markers }) => valueAt(freshnessOf(markers), quantile)),
      }
      if (title !== 'p99') return row
      const rounds = succeeded(results)
      return { ...row, ...costs(rounds), details: loadDetails(rounds) }
    }),
  )
}

/** Returns the rows of the idle pipeline. */
export function idleRows(results: Results<Freshness>): Row[] {
  const rounds = succeeded(results)
  return rowsOf(results, () => [
    {
      name: 'p50 with nothing else to do',
      unit: 'ms',
      samples: samplesOf(results, ({ markers }) => valueAt(freshnessOf(markers), 0.5)),
      details: {
        longest: `${Math.max(...rounds.flatMap(({ markers }) => freshnessOf(markers))).toFixed(0)} ms`,
        ...watchDetails(rounds),
      },
    },
  ])
}

/** Returns the times from acknowledgement to visibility in ms, ascending. */
export function freshnessOf(markers: readonly Marker[]): number[] {
  return spansBetween(markers, marker => marker.acknowledgedAt)
}

/** Returns durations of acknowledged markers. A refused marker never becomes visible. */
function spansBetween(markers: readonly Marker[], from: (marker: Marker) => number | undefined): number[] {
  return markers
    .flatMap(marker => {
      const [start, end] = [from(marker), marker.visibleAt]
      return marker.acknowledgedAt === undefined || start === undefined || end === undefined ? [] : [end - start]
    })
    .toSorted((a, b) => a - b)
}

/** Returns the smallest value that this share of the values does not exceed. */
export function valueAt(ascending: readonly number[], quantile: number): number {
  const value = ascending[Math.ceil(ascending.length * quantile) - 1]
  if (value === undefined) throw new RangeError('no marker was acknowledged')
  return value
}

function costs(rounds: readonly LoadedFreshness[]): Pick<Row, 'cpu' | 'peakMemoryBytes'> {
  const processes = Object.keys(rounds[0]?.use ?? {})
  const perMillion = (seconds: (round: LoadedFreshness) => number) =>
    summarize(rounds.map(round => (seconds(round) / (round.load.ok * SPANS)) * 1e6)).median
  const used = processes.map(name => [name, perMillion(({ use }) => use[name]?.cpuSeconds ?? 0)] as const)
  return {
    cpu: {
      per: 'million spans',
      seconds: Object.fromEntries([...used, ['load generator', perMillion(({ load }) => load.cpuSeconds)]]),
    },
    peakMemoryBytes: Object.fromEntries(
      processes.map(name => [name, Math.max(...rounds.map(({ use }) => use[name]?.peakMemoryBytes ?? 0))]),
    ),
  }
}

function loadDetails(rounds: readonly LoadedFreshness[]): Record<string, string> {
  const median = (of: (round: LoadedFreshness) => number) => summarize(rounds.map(of)).median
  const latency = (of: (round: LoadedFreshness) => Percentiles) =>
    `${median(round => of(round).p50Ms).toFixed(1)} / ${median(round => of(round).p99Ms).toFixed(1)} ms`
  const fromSending = (quantile: number) =>
    median(({ markers }) =>
      valueAt(
        spansBetween(markers, ({ sentAt }) => sentAt),
        quantile,
      ),
    ).toFixed(0)
  const refused = ({ load }: LoadedFreshness) =>
    (load.statuses[429] ?? 0) / ((load.statuses[200] ?? 0) + (load.statuses[429] ?? 0))
  return {
    'due to acknowledged, p50 / p99': latency(({ load }) => load.latency),
    'generator late by, p50 / p99': latency(({ load }) => load.lateness),
    'spans/s': Math.round(median(({ load }) => (load.ok * SPANS) / load.seconds)).toLocaleString('en'),
    refused: `${(median(refused) * 100).toFixed(1)} %`,
    'sent to seen, p50 / p99': `${fromSending(0.5)} / ${fromSending(0.99)} ms`,
    'backlog stored after the load in': `${median(({ drainSeconds }) => drainSeconds * 1_000).toFixed(0)} ms`,
    ...watchDetails(rounds),
  }
}

function watchDetails(rounds: readonly Freshness[]): Record<string, string> {
  const median = (of: (round: Freshness) => number) => summarize(rounds.map(of)).median
  const share = median(({ watch: { polls }, pollCpuSeconds }) => (pollCpuSeconds * polls.count) / polls.seconds)
  return {
    markers: rounds.map(({ markers }) => markers.length).join(' + '),
    'seen within, p50 / p99': `${median(({ watch }) => watch.resolution().p50Ms).toFixed(0)} / ${median(({ watch }) => watch.resolution().p99Ms).toFixed(0)} ms`,
    'ClickHouse’s CPU for polling': `${(median(({ pollCpuSeconds }) => pollCpuSeconds) * 1_000).toFixed(1)} ms a poll, ${(share * 100).toFixed(0)} % of a core`,
  }
}
