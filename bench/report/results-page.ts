import { markdownTable, type Table } from './table.ts'

/** One scenario in bench/RESULTS.md, in Markdown. */
export interface ScenarioReport {
  readonly name: string
  /** Rows of the table of goals. */
  readonly goals: readonly string[]
  /** The text below the title of its section, without blank lines around it. */
  readonly section: string
}

/** The scenario whose figures head the page: what users pay. */
export const HEADLINE = 'sustained'

export const GOALS_HEAD = ['scenario', 'what', 'against', 'goal', 'median', 'range', 'unit', '']

/** Begins a remark of a section that is repeated at the top of the page. */
const OUTAGE = /^> (VOID|Failed round|Failed|Left out|Not measured): (.*)$/gm
const OF_SCENARIO: ReadonlySet<string> = new Set(['Failed round', 'Left out'])
const OUTCOME = /\| (\w+) \|$/

/** Renders bench/RESULTS.md from the reports of scenarios, which may be of different runs. */
export function renderPage(reports: readonly ScenarioReport[]): string {
  const goals: Table = { head: GOALS_HEAD, rows: [] }
  const outages = outagesOf(reports).map(text => `- ${text}`)
  return [
    '# Benchmark results',
    '',
    'Written by `npm run bench`. Each scenario names its commit, time and machine, and `npm run bench -- NAME --write` measures it again.',
    'Medians, with the smallest and largest of the rounds; ratios are taken within a round. Everything runs on one machine: load',
    'generator, services and stores share its cores. The machine is calibrated before and after each scenario. Where it changed, the',
    'figures are void: shown, not judged.',
    '',
    ...sections(reports.filter(({ name }) => name === HEADLINE)),
    '## Goals',
    '',
    ...markdownTable(goals),
    ...reports.flatMap(report => report.goals),
    '',
    `${countText(reports)}.`,
    '',
    ...(outages.length > 0 ? [...outages, ''] : []),
    ...sections(reports.filter(({ name }) => name !== HEADLINE)),
  ].join('\n')
}

const sections = (reports: readonly ScenarioReport[]) =>
  reports.flatMap(({ name, section }) => [`## ${name}`, '', section, ''])

/** Returns the reports of a page. */
export function readPage(page: string): ScenarioReport[] {
  const [, ...sections] = page.split(/^## /m)
  const isGoals = (text: string) => text.startsWith('Goals\n')
  const rows =
    sections
      .find(isGoals)
      ?.split('\n')
      .filter(line => line.startsWith('| ')) ?? []
  return sections
    .filter(text => !isGoals(text))
    .map(text => {
      const [name = ''] = text.split('\n', 1)
      return { name, goals: rows.filter(row => row.startsWith(`| ${name} |`)), section: text.slice(name.length).trim() }
    })
}

/** Returns the reports in the order of `names`, those of `newer` instead of those of `kept`. */
export function mergeReports(
  names: readonly string[],
  kept: readonly ScenarioReport[],
  newer: readonly ScenarioReport[],
): ScenarioReport[] {
  const reports = new Map([...kept, ...newer].map(report => [report.name, report]))
  return names.flatMap(name => reports.get(name) ?? [])
}

/** Returns what is void, failed, was left out or not measured, which a table of goals cannot show. */
export function outagesOf(reports: readonly ScenarioReport[]): string[] {
  return reports.flatMap(({ name, section }) =>
    [...section.matchAll(OUTAGE)].map(
      ([, kind, text]) => `${kind}${OF_SCENARIO.has(kind ?? '') ? ' of ' : ': '}${name}: ${text}`,
    ),
  )
}

/** Returns how many goals are met, missed, void and not measured. */
export function countText(reports: readonly ScenarioReport[]): string {
  const outcomes = reports.flatMap(({ goals }) => goals.map(row => OUTCOME.exec(row)?.[1]))
  const count = (outcome: string) => outcomes.filter(found => found === outcome).length
  const notMeasured = reports.flatMap(({ section }) => section.match(/^> Not measured: /gm) ?? []).length
  return [
    `${count('met')} met`,
    `${count('MISSED')} missed`,
    ...(count('VOID') > 0 ? [`${count('VOID')} void`] : []),
    ...(notMeasured > 0 ? [`${notMeasured} not measured`] : []),
  ].join(', ')
}
