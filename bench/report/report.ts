import type { GoalLine } from '../goals.ts'
import { calibrationText } from '../machine/calibrate.ts'
import { durationText, figureText, goalText, rangeText } from './figure-text.ts'
import { countText, GOALS_HEAD, HEADLINE, outagesOf, type ScenarioReport } from './results-page.ts'
import {
  goalsOf,
  isVoid,
  type JudgedGoal,
  type SummarizedRow,
  type SummarizedScenario,
  unmeasuredGoals,
  type Verdict,
} from './summary.ts'
import { markdownTable, type Table, textTable } from './table.ts'

/** One run of the bench, as `--json` writes it. */
export interface BenchRun {
  readonly version: 1
  readonly quick: boolean
  /** Duration of the whole run. */
  readonly seconds: number
  readonly facts: Readonly<Record<string, string>>
  readonly scenarios: readonly SummarizedScenario[]
  readonly failed: readonly FailedScenario[]
  /** All goals of this commit. */
  readonly goals: readonly GoalLine[]
}

/** A scenario without figures. */
export interface FailedScenario {
  readonly name: string
  readonly reason: string
}

/** Returns what bench/RESULTS.md shows of the scenarios of a run. */
export function reportsOf(run: BenchRun): ScenarioReport[] {
  const facts = `*${Object.entries(run.facts)
    .map(([what, value]) => `${what}: ${value}`)
    .join('; ')}.*`
  return [
    ...run.scenarios.map(scenario => reportOf(run, scenario, facts)),
    ...run.failed.map(({ name, reason }) => {
      const remarks = [`Failed: ${reason}`, ...unmeasuredIn(run, name)]
      return { name, goals: [], section: [facts, ...remarks.map(text => `> ${text}`)].join('\n\n') }
    }),
  ]
}

/** The page has the goals, with their figures, and how they were measured. Other figures are in the terminal and in `--json`. */
function reportOf(run: BenchRun, scenario: SummarizedScenario, facts: string): ScenarioReport {
  const { name } = scenario
  const remarks = [...remarksOf(scenario), ...unmeasuredIn(run, name)]
  const [, , ...goals] = markdownTable(goalsTable([scenario]))
  return {
    name,
    goals,
    section: [
      scenario.question,
      `*${methodText(scenario)}*`,
      facts,
      ...(name === HEADLINE ? [figuresTable(scenario), ...costTables(scenario)].map(inMarkdown) : []),
      ...remarks.map(text => `> ${text}`),
    ].join('\n\n'),
  }
}

const inMarkdown = (table: Table) => markdownTable(table).join('\n')

/** Renders the run for a terminal, with the result of each goal at the end. */
export function renderText(run: BenchRun): string {
  const reports = reportsOf(run)
  return [
    ...run.scenarios.flatMap(scenarioInText),
    '',
    `goals: ${countText(reports)}`,
    '',
    ...textTable(goalsTable(run.scenarios)),
    '',
    ...outagesOf(reports),
    `The run took ${durationText(run.seconds)}.`,
  ].join('\n')
}

function scenarioInText(scenario: SummarizedScenario): string[] {
  const details = scenario.rows.filter(row => row.details).map(row => `  ${row.name}: ${detailText(row)}`)
  const remarks = [...remarksOf(scenario), ...scenario.notes]
  return [
    '',
    `${scenario.name}: ${scenario.question}`,
    `  ${methodText(scenario)}`,
    '',
    ...textTable(figuresTable(scenario)),
    '',
    ...costTables(scenario).flatMap(table => [...textTable(table), '']),
    ...details,
    ...remarks.map(text => `  * ${text}`),
  ]
}

function methodText({ method, seconds }: SummarizedScenario): string {
  return `${method}; ${durationText(seconds)} in total.`
}

/** Returns what a reader must know before the figures: void, failed rounds, what was left out, the calibration. */
function remarksOf({ machine, failures, skipped }: SummarizedScenario): string[] {
  return [
    ...(machine?.void ?? []).map(reason => `VOID: ${reason}`),
    ...failures.map(text => `Failed round: ${text}`),
    ...skipped.map(text => `Left out: ${text}`),
    ...(machine ? [`Calibration: ${calibrationText(machine.before, machine.after, machine.stealShare)}`] : []),
  ]
}

/** Returns a line for each figure and each of its ratios. */
function figuresTable(scenario: SummarizedScenario): Table {
  const { rows } = scenario
  const verdictText = (verdict: Verdict | undefined) =>
    verdict === undefined ? '' : `${goalText(verdict.goal)}: ${outcomeText({ ...verdict, isVoid: isVoid(scenario) })}`
  return {
    head: ['', 'median', 'range', 'unit', 'against', 'goal'],
    rows: rows.flatMap(({ name, value, unit, verdict, ratios }) => [
      [name, figureText(value.median), rangeText(value), unit, '', verdictText(verdict)],
      ...ratios.map(ratio => [
        '',
        `× ${figureText(ratio.value.median)}`,
        rangeText(ratio.value),
        '',
        ratio.to,
        verdictText(ratio.verdict),
      ]),
    ]),
  }
}

function outcomeText({ met, isVoid }: Pick<JudgedGoal, 'met' | 'isVoid'>): string {
  if (isVoid) return 'VOID'
  return met ? 'met' : 'MISSED'
}

/** Returns tables of CPU time, one for each unit of work, with a column for every process. */
function costTables({ rows }: SummarizedScenario): Table[] {
  const byUnit = Map.groupBy(
    rows.filter(row => row.cpu),
    row => row.cpu?.per,
  )
  return [...byUnit].map(([per, rows]) => {
    const processes = [...new Set(rows.flatMap(row => Object.keys(row.cpu?.seconds ?? {})))]
    const cell = (value: number | undefined) => (value === undefined ? '' : figureText(value))
    return {
      head: [`CPU seconds per ${per}`, ...processes],
      rows: rows.map(row => [row.name, ...processes.map(process => cell(row.cpu?.seconds[process]))]),
    }
  })
}

function detailText({ details }: SummarizedRow): string {
  return Object.entries(details ?? {})
    .map(([what, value]) => `${what} ${value}`)
    .join(', ')
}

function goalsTable(scenarios: readonly SummarizedScenario[]): Table {
  return {
    head: GOALS_HEAD,
    rows: goalsOf(scenarios).map(judged => [
      judged.scenario,
      judged.row,
      judged.to ?? '',
      goalText(judged.goal),
      figureText(judged.value.median),
      rangeText(judged.value),
      judged.to === undefined ? judged.unit : '×',
      outcomeText(judged),
    ]),
  }
}

/** Returns a line for each goal of a scenario without a figure. A quick run leaves out many cases on purpose. */
function unmeasuredIn({ quick, scenarios, goals }: BenchRun, name: string): string[] {
  if (quick) return []
  return unmeasuredGoals([name], scenarios, goals).map(
    ({ row, to }) => `Not measured: ${row}${to === undefined ? '' : ` over ${to}`}`,
  )
}
