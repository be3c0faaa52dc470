import type { Signal } from '../../schemas/queues/names.ts'
import type { PipelineLoad, PipelineMeasured } from '../measure/measure-pipeline.ts'
import { type Results, samplesOf, succeeded } from '../support/rounds.ts'
import type { Row } from '../support/scenario.ts'
import { summarize } from './statistics.ts'

const NOUNS: Record<Signal, { readonly one: string; readonly many: string; readonly unit: string }> = {
  traces: { one: 'span', many: 'spans', unit: 'spans/s' },
  logs: { one: 'log record', many: 'log records', unit: 'records/s' },
  metrics: { one: 'data point', many: 'data points', unit: 'points/s' },
}

/** Returns the unit of a signal's throughput. */
export const unitOf = (signal: Signal) => NOUNS[signal].unit

/** Formats the content of a payload, such as "200 spans". */
function loadText({ signal, records, data = 'uniform', gzip }: PipelineLoad): string {
  const { one, many } = NOUNS[signal]
  return [
    `${records.toLocaleString('en')} ${data === 'realistic' ? 'realistic ' : ''}${records === 1 ? one : many}`,
    ...(data === 'exceptions' ? ['every tenth with an exception'] : []),
    ...(gzip === undefined ? [] : [gzip === 'half' ? 'half gzip' : 'gzip']),
  ].join(', ')
}

/** Returns the name of a row: contender and payload. */
export const underLoad = (name: string, load: PipelineLoad) => `${name}, ${loadText(load)}`

/** Returns the row of records a second from accepted to queryable, with the cost by process. */
export function throughputRow(name: string, load: PipelineLoad, results: Results<PipelineMeasured>): Row {
  const rounds = succeeded(results)
  const processes = processesOf(rounds)
  const per = `million ${NOUNS[load.signal].many}`
  const cpu = Object.fromEntries(
    processes.map(process => [process, median(rounds.map(round => cpuPerMillion(process, round)))]),
  )
  const generator = rounds.map(({ load, records }) => ((load?.cpuSeconds ?? 0) / records) * 1e6)
  const isGenerated = rounds.every(({ load }) => load !== undefined)
  return {
    name: underLoad(name, load),
    unit: unitOf(load.signal),
    samples: samplesOf(results, ({ records, seconds }) => records / seconds),
    cpu: { per, seconds: { ...cpu, ...(isGenerated && { 'load generator': median(generator) }) } },
    details: detailsOf(rounds),
  }
}

/** Returns the row of the CPU time of some processes together. */
export function costRow(
  name: string,
  processes: readonly string[],
  load: PipelineLoad,
  results: Results<PipelineMeasured>,
): Row {
  return {
    name: underLoad(name, load),
    unit: `CPU s per million ${NOUNS[load.signal].many}`,
    samples: samplesOf(results, round => processes.reduce((sum, process) => sum + cpuPerMillion(process, round), 0)),
  }
}

/** Returns the row of a process's peak memory. */
export function memoryRow(process: string, load: PipelineLoad, results: Results<PipelineMeasured>): Row {
  return {
    name: underLoad(`peak memory of the ${process}`, load),
    unit: 'MB',
    samples: samplesOf(results, ({ use }) => (use[process]?.peakMemoryBytes ?? 0) / 1e6),
  }
}

const median = (samples: readonly number[]) => summarize(samples).median

const processesOf = ([first]: readonly PipelineMeasured[]) => Object.keys(first?.use ?? {})

function cpuPerMillion(process: string, { use, records }: PipelineMeasured): number {
  return ((use[process]?.cpuSeconds ?? 0) / records) * 1e6
}

function detailsOf(results: readonly PipelineMeasured[]): Record<string, string> {
  const details: Record<string, string> = {
    'rows per insert': Math.round(median(results.map(({ rowsPerInsert }) => rowsPerInsert))).toLocaleString('en'),
  }
  const loads = results.flatMap(({ load }) => load ?? [])
  if (loads.length > 0) {
    const refused = ({ statuses: { 200: ok = 0, 429: refused = 0 } }: (typeof loads)[number]) =>
      refused / (ok + refused)
    details.refused = `${(median(loads.map(refused)) * 100).toFixed(1)} %`
    details['generator busy'] =
      `${Math.round(median(loads.map(({ cpuSeconds, seconds }) => cpuSeconds / seconds)) * 100)} %`
  }
  return details
}
