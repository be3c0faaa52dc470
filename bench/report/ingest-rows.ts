import type { Percentiles } from '../load/latency-histogram.ts'
import type { IngestLoad, IngestMeasured } from '../measure/measure-ingest.ts'
import type { OpenLoop } from '../measure/measure-open-loop.ts'
import { type Results, rowsOf, samplesOf, succeeded } from '../support/rounds.ts'
import type { Ratio, Row } from '../support/scenario.ts'
import { summarize } from './statistics.ts'

type Over = (of: (measured: IngestMeasured) => number) => number

/** Returns the row of one contender under one load. */
export function ingestRow(
  name: string,
  load: IngestLoad,
  results: Results<IngestMeasured>,
  ratios: readonly Ratio[],
): Row {
  const rounds = succeeded(results)
  const median: Over = of => summarize(rounds.map(of)).median
  const processes = Object.keys(rounds[0]?.use ?? {})
  const cpuOf = (process: string) => median(({ use, ok }) => ((use[process]?.cpuSeconds ?? 0) / ok) * 1e6)
  return {
    name: underLoad(name, load),
    unit: 'requests/s',
    samples: samplesOf(results, ({ ok, seconds }) => ok / seconds),
    ratios,
    cpu: {
      per: 'million requests',
      seconds: Object.fromEntries([
        ...processes.map(process => [process, cpuOf(process)]),
        ['load generator', median(({ senderCpuSeconds, ok }) => (senderCpuSeconds / ok) * 1e6)],
      ]),
    },
    details: {
      ...detailsOf(rounds, median),
      'CPU a request': processes.map(process => `${process} ${cpuOf(process).toFixed(1)} µs`).join(', '),
    },
  }
}

/** Returns the row of the p99 of the time from request to response. */
export function ingestLatencyRow(name: string, load: IngestLoad, results: Results<IngestMeasured>): Row {
  return {
    name: `${underLoad(name, load)}, p99`,
    unit: 'ms, p99',
    samples: samplesOf(results, ({ load }) => load.latency.p99Ms),
  }
}

/** Returns the row of the CPU time of edge and Redis together. */
export function requestCostRow(load: IngestLoad, results: Results<IngestMeasured>): Row {
  return {
    name: underLoad('edge and Redis', load),
    unit: 'µs of CPU time a request',
    samples: samplesOf(
      results,
      ({ use, ok }) => (((use.edge?.cpuSeconds ?? 0) + (use.redis?.cpuSeconds ?? 0)) / ok) * 1e6,
    ),
  }
}

/** Returns the rows of the open loop and of one client alone. */
export function openLoopRows(results: Results<OpenLoop>): Row[] {
  const latency = ({ p50Ms, p99Ms }: Percentiles) => `${p50Ms.toFixed(2)} / ${p99Ms.toFixed(2)} ms`
  const details = (of: (round: OpenLoop) => Percentiles) => ({
    'p50 / p99 by round': succeeded(results)
      .map(round => latency(of(round)))
      .join('; '),
  })
  const requests = (name: string, of: (round: OpenLoop) => number): Row => ({
    name,
    unit: 'requests/s',
    samples: samplesOf(results, of),
  })
  return rowsOf(results, () => [
    requests('closed loop: uWS, empty route', ({ emptyPerSecond }) => emptyPerSecond),
    {
      ...requests('open loop: product edge', ({ edgePerSecond }) => edgePerSecond),
      ratios: [{ to: 'closed loop: uWS, empty route' }],
      details: details(({ edge }) => edge.latency),
    },
    {
      ...requests('open loop: uWS, empty route', ({ empty }) => empty.ok / empty.seconds),
      details: details(({ empty }) => empty.latency),
    },
    {
      name: 'open loop: p99 over that of the empty route',
      unit: 'fsyncs (p99)',
      samples: samplesOf(results, round => (round.edge.latency.p99Ms - round.empty.latency.p99Ms) / round.fsyncP99Ms),
    },
    {
      name: 'one client alone: p50 over one fsync',
      unit: 'ms',
      samples: samplesOf(results, ({ alone, fsyncP50Ms }) => alone.latency.p50Ms - fsyncP50Ms),
      details: details(({ alone }) => alone.latency),
    },
  ])
}

/** Returns the name of a row: contender and load. */
export const underLoad = (name: string, load: IngestLoad) => `${name}, ${loadText(load)}`

/** Formats a load. */
export const loadText = ({ spans, connections }: IngestLoad) =>
  `${spans} ${spans === 1 ? 'span' : 'spans'}, ${connections} connections`

function detailsOf(results: readonly IngestMeasured[], median: Over): Record<string, string> {
  const percent = (of: (measured: IngestMeasured) => number) => `${Math.round(median(of) * 100)} %`
  const latency = (percentile: 'p50Ms' | 'p99Ms') => median(({ load }) => load.latency[percentile]).toFixed(1)
  const isCounted = results.some(({ payloadsPerCommit }) => payloadsPerCommit !== undefined)
  return {
    'server busy': percent(({ use, seconds }) => (use.edge?.cpuSeconds ?? 0) / seconds),
    'generator busy': percent(({ senderCpuSeconds, seconds }) => senderCpuSeconds / seconds),
    'p50 / p99': `${latency('p50Ms')} / ${latency('p99Ms')} ms`,
    ...(isCounted && { 'payloads a commit': median(({ payloadsPerCommit = 0 }) => payloadsPerCommit).toFixed(1) }),
  }
}
