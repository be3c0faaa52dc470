import type { Goal } from './support/scenario.ts'
import type { Summary } from './support/statistics.ts'
import type { SummarizedRow, SummarizedScenario, Verdict } from './support/summary.ts'

/** One run of the bench, as `--json` writes it and `--compare` reads it. */
export interface BenchRun {
  readonly version: 1
  readonly quick: boolean
  readonly facts: Readonly<Record<string, string>>
  readonly scenarios: readonly SummarizedScenario[]
}

/** bench/RESULTS.md. */
export function renderMarkdown(run: BenchRun): string {
  const facts = Object.entries(run.facts).map(([name, value]) => `| ${name} | ${value} |`)
  return [
    '# Benchmark results',
    '',
    'Written by `npm run bench`. Medians, with the smallest and largest of the rounds; ratios are taken within a round.',
    'Everything runs on one machine: load generator, services and stores share its cores.',
    '',
    '| machine | |',
    '|---|---|',
    ...facts,
    '',
    ...run.scenarios.flatMap(renderScenario),
  ].join('\n')
}

function renderScenario(scenario: SummarizedScenario): string[] {
  const lines = [`## ${scenario.name}`, '', scenario.question, '']
  lines.push(
    ...markdownTable(['', 'median', 'range', 'unit', 'against', 'goal'], scenario.rows.flatMap(figureCells)),
    '',
  )
  const costs = scenario.rows.filter(row => row.cpu ?? row.peakMemoryBytes)
  if (costs.length > 0) lines.push(...markdownTable(['', 'CPU seconds', 'peak memory'], costs.map(costCells)), '')
  const details = scenario.rows.filter(row => row.details)
  lines.push(...details.map(row => `- ${row.name}: ${detailText(row)}`), ...(details.length > 0 ? [''] : []))
  for (const note of scenario.notes) lines.push(`> ${note}`, '>')
  if (scenario.notes.length > 0) lines[lines.length - 1] = ''
  lines.push(`${scenario.rows[0]?.samples.length ?? 0} rounds, ${Math.round(scenario.seconds)} s.`, '')
  return lines
}

/** What a terminal shows: the same figures without the costs that the files keep. */
export function renderText(run: BenchRun): string {
  return run.scenarios
    .flatMap(scenario => [
      '',
      `${scenario.name}: ${scenario.question}`,
      '',
      ...textTable(['', 'median', 'range', 'unit', 'against', 'goal'], scenario.rows.flatMap(figureCells)),
      '',
      ...scenario.rows.flatMap(row => {
        const more = [...costCells(row).slice(1), detailText(row)].filter(text => text !== '')
        return more.length > 0 ? [`  ${row.name}: ${more.join('; ')}`] : []
      }),
      ...scenario.notes.map(note => `  * ${note}`),
    ])
    .join('\n')
}

/** The change of each row that another run has too. A change within the ranges of both is marked as no change. */
export function renderComparison(run: BenchRun, before: BenchRun): string {
  const lines = run.scenarios.flatMap(scenario => {
    const old = new Map(before.scenarios.find(({ name }) => name === scenario.name)?.rows.map(row => [row.name, row]))
    return scenario.rows.flatMap(row => {
      const was = old.get(row.name)
      if (was === undefined) return []
      const change = (row.value.median / was.value.median - 1) * 100
      const overlaps = row.value.min <= was.value.max && was.value.min <= row.value.max
      const text = `${change >= 0 ? '+' : ''}${change.toFixed(1)} %${overlaps ? ' (ranges overlap)' : ''}`
      return [[`${scenario.name}: ${row.name}`, number(was.value.median), number(row.value.median), row.unit, text]]
    })
  })
  return textTable(['', 'before', 'now', 'unit', 'change'], lines).join('\n')
}

/** A line for the figure, and one for each of its ratios. */
function figureCells(row: SummarizedRow): string[][] {
  return [
    [row.name, number(row.value.median), range(row.value), row.unit, '', verdict(row.verdict)],
    ...row.ratios.map(ratio => [
      '',
      `× ${number(ratio.value.median)}`,
      range(ratio.value),
      '',
      ratio.to,
      verdict(ratio.verdict),
    ]),
  ]
}

function costCells({ name, cpu, peakMemoryBytes }: SummarizedRow): string[] {
  const list = (values: Readonly<Record<string, number>> | undefined, text: (value: number) => string) =>
    Object.entries(values ?? {})
      .map(([process, value]) => `${process} ${text(value)}`)
      .join(', ')
  const seconds = list(cpu?.seconds, number)
  return [
    name,
    seconds === '' ? '' : `${seconds} (CPU s per ${cpu?.per})`,
    list(peakMemoryBytes, bytes => `${Math.round(bytes / 1e6)} MB`),
  ]
}

function detailText({ details }: SummarizedRow): string {
  return Object.entries(details ?? {})
    .map(([what, value]) => `${what} ${value}`)
    .join(', ')
}

function verdict(of: Verdict | undefined): string {
  return of === undefined ? '' : `${of.met ? 'met' : 'MISSED'} (${goalText(of.goal)})`
}

function goalText(goal: Goal): string {
  return 'atLeast' in goal ? `≥ ${goal.atLeast.toLocaleString('en')}` : `≤ ${goal.atMost.toLocaleString('en')}`
}

const range = ({ min, max }: Summary) => `${number(min)} … ${number(max)}`

/** Three significant digits, all of them where there are more before the point. */
function number(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return Number(value.toPrecision(3)).toString()
}

function markdownTable(head: readonly string[], rows: readonly string[][]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)]
}

function textTable(head: readonly string[], rows: readonly string[][]): string[] {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map(row => row[i]?.length ?? 0)))
  return [head, ...rows].map(row => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd())
}
