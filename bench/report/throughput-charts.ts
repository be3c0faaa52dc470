import type { Plot } from '../support/scenario.ts'
import type { Chart, ChartLine } from './chart.ts'
import type { SummarizedRow, SummarizedScenario } from './summary.ts'

const X_TITLES: Readonly<Record<Plot['chart'], string>> = {
  'throughput by payload size': 'spans, records or points a payload',
  'throughput by number of processes': 'processes',
}

/**
 * Units that share an axis, because each span, log record and data point becomes a row. Every other unit has its own
 * chart.
 */
const RECORDS = ['spans/s', 'records/s', 'points/s']

interface ThroughputChart extends Chart {
  /** File name in the folder of bench/RESULTS.md. */
  readonly file: string
}

type PlottedRow = SummarizedRow & { readonly plot: Plot }

/** Returns the charts of a run. Rows are grouped by chart and unit. */
export function throughputCharts(scenarios: readonly SummarizedScenario[]): ThroughputChart[] {
  const rows = scenarios.flatMap(({ rows }) => rows).filter((row): row is PlottedRow => row.plot !== undefined)
  const charts = Map.groupBy(rows, ({ plot, unit }) => (RECORDS.includes(unit) ? plot.chart : `${plot.chart}, ${unit}`))
  return [...charts].map(([title, rows]) => ({
    title: capitalized(title),
    file: `${title.replaceAll(/[^a-z]+/g, '-')}.svg`,
    xTitle: X_TITLES[(rows[0] as PlottedRow).plot.chart],
    yTitle: [...new Set(rows.map(row => row.unit))].join(', '),
    lines: linesOf(rows),
  }))
}

function linesOf(rows: readonly PlottedRow[]): ChartLine[] {
  return [...Map.groupBy(rows, row => row.plot.line)].map(([name, rows]) => ({
    name,
    points: rows.map(({ plot, value }) => ({ x: plot.x, y: value })).sort((a, b) => a.x - b.x),
  }))
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
