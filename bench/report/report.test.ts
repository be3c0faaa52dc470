import { describe, expect, it } from 'vitest'
import type { GoalLine } from '../goals.ts'
import type { Calibration } from '../machine/calibrate.ts'
import type { ScenarioOutcome } from '../support/run-scenario.ts'
import type { Row } from '../support/scenario.ts'
import { type BenchRun, renderText, reportsOf } from './report.ts'
import { mergeReports, readPage, renderPage } from './results-page.ts'
import { type MachineDuring, summarizeScenario } from './summary.ts'

const product: Row = {
  name: 'product | 20 spans',
  unit: 'spans/s',
  samples: [100_000, 120_000, 110_000],
  ratios: [{ to: 'peer' }],
  cpu: { per: 'million spans', seconds: { edge: 1.2345, Redis: 0.5 } },
  details: { body: '7,000 bytes' },
}
const peer: Row = {
  name: 'peer',
  unit: 'spans/s',
  samples: [20_000, 20_000, 20_000],
  cpu: { per: 'million spans', seconds: { edge: 30 } },
}

const GOALS: GoalLine[] = [
  { scenario: 'pipeline', row: 'product | 20 spans', goal: { atLeast: 150_000 } },
  { scenario: 'pipeline', row: 'product | 20 spans', to: 'peer', goal: { atLeast: 4 } },
]
const PIPELINE = { name: 'pipeline', question: 'How fast is all of it?', seconds: 42.4, goals: GOALS }

function runOf(result: Partial<ScenarioOutcome>, run: Partial<BenchRun> = {}, machine?: MachineDuring): BenchRun {
  const scenario = { ...PIPELINE, ...(machine && { machine }) }
  return {
    version: 1,
    quick: false,
    seconds: 754,
    facts: { CPU: 'two cores', Commit: '1234abc' },
    scenarios: [summarizeScenario(scenario, { rows: [product, peer], method: '3 rounds', ...result })],
    failed: [],
    goals: GOALS,
    ...run,
  }
}

const renderMarkdown = (run: BenchRun) => renderPage(reportsOf(run))
const lines = (text: string) => text.split('\n').map(line => line.replaceAll(/ {2,}/g, '  ').trim())

describe('bench/RESULTS.md', () => {
  it('starts with the result of every goal', () => {
    const [before = ''] = renderMarkdown(runOf({})).split('## pipeline')
    expect(lines(before)).toEqual(
      expect.arrayContaining([
        '| pipeline | product \\| 20 spans |  | ≥ 150,000 | 110,000 | 100,000 … 120,000 | spans/s | MISSED |',
        '| pipeline | product \\| 20 spans | peer | ≥ 4 | 5.5 | 5 … 6 | × | met |',
        '1 met, 1 missed.',
      ]),
    )
  })

  it('shows the question, the method and the machine of each scenario', () => {
    const method = '1 warm-up round, 3 rounds of 6 s'
    const [, section = ''] = renderMarkdown(runOf({ method })).split('## pipeline')
    expect(lines(section).filter(line => line !== '')).toEqual([
      'How fast is all of it?',
      '*1 warm-up round, 3 rounds of 6 s; 42 s in total.*',
      '*CPU: two cores; Commit: 1234abc.*',
    ])
  })

  it('is headed by what users pay', () => {
    const failed = [{ name: 'sustained', reason: 'the disk is full' }]
    const page = renderMarkdown(runOf({}, { failed }))
    expect(page.match(/^## .*/gm)).toEqual(['## sustained', '## Goals', '## pipeline'])
    expect(renderPage(readPage(page))).toBe(page)
  })

  it('lists what was left out, at the top and in its scenario', () => {
    const run = runOf({ skipped: ['OpenTelemetry Collector: OTELCOL_BIN is not set'] })
    expect(renderMarkdown(run).match(/OTELCOL_BIN is not set/g)).toHaveLength(2)
    expect(renderText(run).match(/OTELCOL_BIN is not set/g)).toHaveLength(2)
  })

  it('lists rounds that failed and goals without a figure at the top, and counts them', () => {
    const failures = ['20 spans, round 2/3: peer: 2,118 responses were 503']
    const [before = '', section = ''] = renderMarkdown(runOf({ rows: [product], failures })).split('## pipeline')
    expect(before).toContain('0 met, 1 missed, 1 not measured.')
    expect(before).toContain(`- Failed round of pipeline: ${failures[0]}`)
    expect(before).toContain('- Not measured: pipeline: product | 20 spans over peer')
    expect(section).toContain(`> Failed round: ${failures[0]}`)
  })

  it('counts the goals of a scenario that failed as not measured', () => {
    const failed = [{ name: 'pipeline', reason: 'the disk is full' }]
    const [before = ''] = renderMarkdown(runOf({}, { scenarios: [], failed })).split('## pipeline')
    expect(before).toContain('0 met, 0 missed, 2 not measured.')
    expect(before).toContain('- Failed: pipeline: the disk is full')
    expect(before).toContain('- Not measured: pipeline: product | 20 spans over peer')
  })

  it('shows the figures of a scenario during which the machine changed, and judges none of them', () => {
    const calm: Calibration = {
      oneCore: 4_000,
      allCores: 7_600,
      fsyncP50Ms: 0.3,
      fsyncP99Ms: 1,
    }
    const after = { ...calm, oneCore: 3_000 }
    const machine = { before: calm, after, stealShare: 0.001, void: ['one core changed by -25 %'] }
    const [before = '', section = ''] = renderMarkdown(runOf({}, {}, machine)).split('## pipeline')
    expect(before).toContain('0 met, 0 missed, 2 void.')
    expect(before).toContain('- VOID: pipeline: one core changed by -25 %')
    expect(before).toMatch(/≥ 150,000 \| 110,000 \| .* \| VOID \|/)
    expect(section).toContain('> Calibration: one core 4000 → 3000 turns/s')
  })

  it('keeps what it has of scenarios that a run leaves out, in the order of the scenarios', () => {
    const earlier = renderMarkdown(runOf({ skipped: ['measured first'] }))
    const growth = runOf({}, { failed: [{ name: 'growth', reason: 'the disk is full' }], scenarios: [] })
    const withGrowth = renderPage(mergeReports(['growth', 'pipeline'], readPage(earlier), reportsOf(growth)))
    expect(withGrowth).toContain('> Left out: measured first')
    expect(withGrowth).toContain('- Failed: growth: the disk is full')
    expect(withGrowth.match(/^## .*/gm)).toEqual(['## Goals', '## growth', '## pipeline'])
    expect(withGrowth.match(/^\| pipeline .* MISSED \|$/gm)).toHaveLength(1)
    const again = reportsOf(runOf({ skipped: ['measured again'] }))
    const replaced = renderPage(mergeReports(['growth', 'pipeline'], readPage(withGrowth), again))
    expect(replaced).not.toContain('measured first')
    expect(replaced).toContain('> Left out: measured again')
    expect(renderPage(readPage(replaced))).toBe(replaced)
  })
})

describe('renderText', () => {
  it('shows each figure, its ratios, and the cost of every process', () => {
    expect(lines(renderText(runOf({ notes: ['Merges are included.'] })))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^× 5.5 {2}5 … 6 {2}peer {2}≥ 4: met$/),
        expect.stringMatching(/^CPU seconds per million spans {2}edge {2}Redis$/),
        expect.stringMatching(/^product \| 20 spans {2}1.23 {2}0.5$/),
        expect.stringMatching(/^peer {2}30$/),
        'product | 20 spans: body 7,000 bytes',
        '* Merges are included.',
      ]),
    )
  })

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
