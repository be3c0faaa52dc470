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

/** Returns the rows at a share of capacity, with one sample a round. Their names begin with `what`. */
export function levelRows(share: number, results: Results<LoadedFreshness>, what = ''): Row[] {
  return rowsOf(results, () =>
    QUANTILES.map(([title, quantile]) => ({
      name: `${what}${title} at ${Math.round(share * 100)} % of capacity`,
      unit: 'ms',
      samples: samplesOf(results, ({ markers }) => valueAt(freshnessOf(markers), quantile)),
      ...(title === 'p99' && costsOf(succeeded(results))),
    })),
  )
}

/** Returns the row of the idle pipeline. */
export function idleRows(results: Results<Freshness>): Row[] {
  const samples = samplesOf(results, ({ markers }) => valueAt(freshnessOf(markers), 0.5))
  return rowsOf(results, () => [{ name: 'p50 with nothing else to do', unit: 'ms', samples }])
}

/** Returns the times from acknowledgement to visibility in ms, ascending. */
export const freshnessOf = (markers: readonly Marker[]) => durationsOf(markers, 'acknowledgedAt', 'visibleAt')

/** Returns the times between two moments of each marker that has both, ascending. A refused marker has only the first. */
export function durationsOf(markers: readonly Marker[], from: Moment, to: Moment): number[] {
  return markers
    .flatMap(({ [from]: start, [to]: end }) => (start === undefined || end === undefined ? [] : [end - start]))
    .toSorted((a, b) => a - b)
}

type Moment = 'sentAt' | 'acknowledgedAt' | 'visibleAt'

/** Returns the smallest value that this share of the values does not exceed. */
export function valueAt(ascending: readonly number[], quantile: number): number {
  const value = ascending[Math.ceil(ascending.length * quantile) - 1]
  if (value === undefined) throw new RangeError('no marker was acknowledged')
  return value
}

function costsOf(rounds: readonly LoadedFreshness[]): Pick<Row, 'cpu' | 'details'> {
  const median = (of: (round: LoadedFreshness) => number) => summarize(rounds.map(of)).median
  const perMillion = (seconds: (round: LoadedFreshness) => number) =>
    median(round => (seconds(round) / (round.load.ok * SPANS)) * 1e6)
  const used = Object.keys(rounds[0]?.use ?? {}).map(name => [
    name,
    perMillion(({ use }) => use[name]?.cpuSeconds ?? 0),
  ])
  return {
    cpu: {
      per: 'million spans',
      seconds: Object.fromEntries([...used, ['load generator', perMillion(({ load }) => load.cpuSeconds)]]),
    },
    details: {
      'generator late by, p99': `${median(({ load }) => load.lateness.p99Ms).toFixed(1)} ms`,
      'spans/s': Math.round(median(({ load }) => (load.ok * SPANS) / load.seconds)).toLocaleString('en'),
      markers: rounds.map(({ markers }) => markers.length).join(' + '),
    },
  }
}
