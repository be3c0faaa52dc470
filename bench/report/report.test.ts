import { describe, expect, it } from 'vitest'
import type { Row, ScenarioResult } from '../support/scenario.ts'
import { drawChart } from './chart.ts'
import { type BenchRun, renderMarkdown, renderText } from './report.ts'
import { summarizeScenario } from './summary.ts'
import { throughputCharts } from './throughput-charts.ts'

const product: Row = {
  name: 'product | 20 spans',
  unit: 'spans/s',
  samples: [100_000, 120_000, 110_000],
  goal: { atLeast: 150_000 },
  ratios: [{ to: 'peer', goal: { atLeast: 4 } }],
  cpu: { per: 'million spans', seconds: { edge: 1.2345, Redis: 0.5 } },
  peakMemoryBytes: { edge: 181_400_000 },
  plot: { chart: 'throughput by payload size', line: 'product', x: 20 },
  details: { body: '7,000 bytes' },
}
const peer: Row = {
  name: 'peer',
  unit: 'spans/s',
  samples: [20_000, 20_000, 20_000],
  cpu: { per: 'million spans', seconds: { edge: 30 } },
}

function runOf(result: Partial<ScenarioResult>, run: Partial<BenchRun> = {}): BenchRun {
  const scenario = { name: 'pipeline', question: 'How fast is all of it?' }
  return {
    version: 1,
    quick: false,
    seconds: 754,
    facts: { CPU: 'two cores' },
    scenarios: [summarizeScenario(scenario, { rows: [product, peer], method: '3 rounds', ...result }, 42.4)],
    failed: [],
    ...run,
  }
}

const lines = (text: string) => text.split('\n').map(line => line.replaceAll(/ {2,}/g, '  ').trim())

describe('bench/RESULTS.md', () => {
  it('starts with the machine, the duration of the run and the result of every goal', () => {
    const [before = ''] = renderMarkdown(runOf({})).split('## pipeline')
    expect(before).toContain('which took 12 min 34 s')
    expect(before).toContain('| CPU | two cores |')
    expect(lines(before)).toEqual(
      expect.arrayContaining([
        '| pipeline | product \\| 20 spans |  | ≥ 150,000 | 110,000 | 100,000 … 120,000 | spans/s | MISSED |',
        '| pipeline | product \\| 20 spans | peer | ≥ 4 | 5.5 | 5 … 6 | × | met |',
        '1 met, 1 missed.',
      ]),
    )
  })

  it('shows the question, the method and the cost of every process for each scenario', () => {
    const method = '1 warm-up round, 3 rounds of 6 s'
    const [, section = ''] = renderMarkdown(runOf({ method, notes: ['Merges are included.'] })).split('## pipeline')
    expect(lines(section)).toEqual(
      expect.arrayContaining([
        'How fast is all of it?',
        '*1 warm-up round, 3 rounds of 6 s; 42 s in total.*',
        '|  | × 5.5 | 5 … 6 |  | peer | ≥ 4: met |',
        '| CPU seconds per million spans | edge | Redis |',
        '| product \\| 20 spans | 1.23 | 0.5 |',
        '| peer | 30 |  |',
        '| peak memory, MB | edge |',
        '| product \\| 20 spans | 181 |',
        '- product | 20 spans: body 7,000 bytes',
        '> Merges are included.',
      ]),
    )
  })

  it('lists what was left out, at the top and in its scenario', () => {
    const run = runOf({ skipped: ['OpenTelemetry Collector: OTELCOL_BIN is not set'] })
    expect(renderMarkdown(run).match(/OTELCOL_BIN is not set/g)).toHaveLength(2)
    expect(renderText(run).match(/OTELCOL_BIN is not set/g)).toHaveLength(2)
  })

  it('shows the charts in the same folder', () => {
    const run = runOf({})
    expect(throughputCharts(run.scenarios).map(({ file }) => file)).toEqual(['throughput-by-payload-size.svg'])
    expect(renderMarkdown(run)).toContain('![Throughput by payload size](throughput-by-payload-size.svg)')
    expect(renderMarkdown(runOf({ rows: [peer] }))).not.toContain('.svg')
  })
})

describe('renderText', () => {
  it('ends with the goals, the failures and the duration of the run', () => {
    const failed = [{ name: 'growth', reason: 'the disk is full' }]
    const text = renderText(runOf({}, { failed }))
    expect(lines(text).slice(-5)).toEqual([
      expect.stringMatching(/^pipeline {2}product \| 20 spans {2}≥ 150,000 .*MISSED$/),
      expect.stringMatching(/^pipeline {2}product \| 20 spans {2}peer {2}≥ 4 .*met$/),
      '',
      'Failed: growth: the disk is full',
      'The run took 12 min 34 s.',
    ])
  })
})

describe('throughputCharts', () => {
  const plotted = (name: string, unit: string, line: string, x: number): Row => ({
    name,
    unit,
    samples: [1_000 * x],
    plot: { chart: 'throughput by payload size', line, x },
  })

  it('sorts the rows of a line by x, across scenarios', () => {
    const scenarios = [[200, 1], [20]].map((sizes, i) =>
      summarizeScenario(
        { name: `s${i}`, question: '' },
        { rows: sizes.map(x => plotted(`${x}`, 'spans/s', 'product', x)), method: '1 round' },
        1,
      ),
    )
    const [chart] = throughputCharts(scenarios)
    expect(chart?.lines.map(({ name, points }) => [name, points.map(({ x }) => x)])).toEqual([
      ['product', [1, 20, 200]],
    ])
    expect(chart && drawChart(chart)).toContain('Throughput by payload size')
  })

  it('draws spans, records and points on one axis, and requests on another', () => {
    const rows = [
      plotted('a', 'spans/s', 'traces', 1),
      plotted('b', 'records/s', 'logs', 1),
      plotted('c', 'requests/s', 'edge', 1),
    ]
    const charts = throughputCharts([summarizeScenario({ name: 's', question: '' }, { rows, method: '1 round' }, 1)])
    expect(charts.map(({ file, yTitle, lines }) => [file, yTitle, lines.length])).toEqual([
      ['throughput-by-payload-size.svg', 'spans/s, records/s', 2],
      ['throughput-by-payload-size-requests-s.svg', 'requests/s', 1],
    ])
  })
})
