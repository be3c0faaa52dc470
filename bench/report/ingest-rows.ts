import type { IngestLoad, IngestMeasured } from '../measure/measure-ingest.ts'
import type { Ratio, Row } from '../support/scenario.ts'
import { summarize } from './statistics.ts'

type Over = (of: (measured: IngestMeasured) => number) => number

/** Returns the row of one contender under one load. */
export function ingestRow(
  name: string,
  load: IngestLoad,
  results: readonly IngestMeasured[],
  ratios: readonly Ratio[],
): Row {
  const median: Over = of => summarize(results.map(of)).median
  const processes = Object.keys(results[0]?.use ?? {})
  const cpuOf = (process: string) => median(({ use, ok }) => ((use[process]?.cpuSeconds ?? 0) / ok) * 1e6)
  return {
    name: underLoad(name, load),
    unit: 'requests/s',
    samples: results.map(({ ok, seconds }) => ok / seconds),
    ratios,
    cpu: {
      per: 'million requests',
      seconds: Object.fromEntries([
        ...processes.map(process => [process, cpuOf(process)]),
        ['load generator', median(({ senderCpuSeconds, ok }) => (senderCpuSeconds / ok) * 1e6)],
      ]),
    },
    peakMemoryBytes: Object.fromEntries(
      processes.map(process => [process, Math.max(...results.map(({ use }) => use[process]?.peakMemoryBytes ?? 0))]),
    ),
    details: {
      ...detailsOf(results, median),
      'CPU a request': processes.map(process => `${process} ${cpuOf(process).toFixed(1)} µs`).join(', '),
    },
  }
}

/** Returns the same figures in spans a second, for the chart of throughput by payload size. */
export function ingestSpansRow(name: string, load: IngestLoad, results: readonly IngestMeasured[]): Row {
  return {
    name: `${underLoad(name, load)}, in spans`,
    unit: 'spans/s',
    samples: results.map(({ ok, seconds }) => (ok * load.spans) / seconds),
    plot: { chart: 'throughput by payload size', line: 'edge, accepted', x: load.spans },
  }
}

/** Returns the name of a row: contender and load. */
export const underLoad = (name: string, load: IngestLoad) => `${name}, ${loadText(load)}`

/** Formats a load. */
export const loadText = ({ spans, connections }: IngestLoad) =>
  `${spans} ${spans === 1 ? 'span' : 'spans'}, ${connections} connections`

function detailsOf(results: readonly IngestMeasured[], median: Over): Record<string, string> {
  const percent = (of: (measured: IngestMeasured) => number) => `${Math.round(median(of) * 100)} %`
  const details: Record<string, string> = {
    'server busy': percent(({ use, seconds }) => ((use.edge ?? use.redis)?.cpuSeconds ?? 0) / seconds),
    'generator busy': percent(({ senderCpuSeconds, seconds }) => senderCpuSeconds / seconds),
  }
  const [first] = results
  if (first?.load) {
    const latency = (percentile: 'p50Ms' | 'p99Ms') => median(({ load }) => load?.latency[percentile] ?? 0).toFixed(1)
    details['p50 / p99'] = `${latency('p50Ms')} / ${latency('p99Ms')} ms`
    details.body = `${Math.round(first.load.bodyBytes).toLocaleString('en')} bytes`
  }
  if (first?.payloadsPerCommit !== undefined) {
    details['payloads a commit'] = median(({ payloadsPerCommit = 0 }) => payloadsPerCommit).toFixed(1)
  }
  return details
}
