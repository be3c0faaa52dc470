import type { PipelineLoad, PipelineMeasured } from '../measure/measure-pipeline.ts'
import { PRODUCT } from '../peers/pipeline-contenders.ts'
import { type Results, rowsOf, samplesOf, succeeded } from '../support/rounds.ts'
import type { Row } from '../support/scenario.ts'
import { costRow, throughputRow, underLoad } from './pipeline-rows.ts'

const REWRITES = 'rewrites'

/** Returns the figures of each contender under a load, those of the product with their ratios to the others. */
export function sustainedRows(load: PipelineLoad, measured: ReadonlyMap<string, Results<PipelineMeasured>>): Row[] {
  const names = [...measured].filter(([, results]) => succeeded(results).length > 0).map(([name]) => name)
  const rivals = names.filter(name => name !== PRODUCT)
  const titleOf = (figure: string, name: string) => (name === PRODUCT ? figure : `${figure} of ${name}`)
  const rowsOfEach = (figure: string, rowOf: (title: string, results: Results<PipelineMeasured>) => Row): Row[] =>
    names.flatMap(name =>
      rowsOf(measured.get(name) ?? [], results => {
        const row = rowOf(titleOf(figure, name), results)
        const ratios = rivals.map(rival => ({ to: underLoad(titleOf(figure, rival), load) }))
        // A short load is not rewritten at all, and a ratio to 0 does not exist.
        return [{ ...row, ...(name === PRODUCT && figure !== REWRITES && { ratios }) }]
      }),
    )
  const figure =
    (unit: string, of: (result: PipelineMeasured) => number) =>
    (title: string, results: Results<PipelineMeasured>): Row => ({
      name: underLoad(title, load),
      unit,
      samples: samplesOf(results, of),
    })
  return [
    ...rowsOfEach('ClickHouse', (title, results) => costRow(title, ['ClickHouse'], load, results)),
    ...rowsOfEach('all processes', (title, results) => costRow(title, processesOf(results), load, results)),
    ...rowsOfEach('rate', (title, results) => rateRow(title, load, results)),
    ...rowsOfEach(
      'on disk',
      figure('bytes a span', ({ storedBytes, records }) => storedBytes / records),
    ),
    ...rowsOfEach(
      REWRITES,
      figure('a row', ({ rewrites }) => rewrites),
    ),
  ]
}

const processesOf = (results: Results<PipelineMeasured>) => Object.keys(succeeded(results)[0]?.use ?? {})

function rateRow(title: string, load: PipelineLoad, results: Results<PipelineMeasured>): Row {
  const row = throughputRow(title, load, results)
  const rounds = succeeded(results)
  const spans = rounds.map(({ records }) => records.toLocaleString('en')).join(', ')
  const merges = rounds.every(({ isAtRest }) => isAtRest) ? 'at rest' : 'NOT at rest'
  const peaks = processesOf(results).map(name => {
    const bytes = Math.max(...rounds.map(({ use }) => use[name]?.peakMemoryBytes ?? 0))
    return `${name} ${Math.round(bytes / 1e6).toLocaleString('en')} MB`
  })
  return { ...row, details: { ...row.details, spans, merges, peaks: peaks.join(' ') } }
}
