import { type GoalLine, goalsFor } from '../goals.ts'
import type { Calibration } from '../machine/calibrate.ts'
import type { Goal, Row, ScenarioResult } from '../support/scenario.ts'
import { measuredSamples, ratiosByRound, type Summary, summarize } from './statistics.ts'

/** A result as it is printed and written as JSON: samples with their medians, ranges and ratios. */
export interface SummarizedScenario extends Pick<ScenarioResult, 'method'> {
  readonly name: string
  readonly question: string
  readonly seconds: number
  readonly rows: readonly SummarizedRow[]
  readonly skipped: readonly string[]
  readonly notes: readonly string[]
  /** Rounds that failed. */
  readonly failures: readonly string[]
  readonly machine?: MachineDuring
}

/** The machine before, during and after a scenario. */
export interface MachineDuring {
  readonly before: Calibration
  readonly after: Calibration
  /** Share of the CPU time of the scenario that the host took. */
  readonly stealShare: number
  /** Why the figures are void. Empty if the machine was the same all the time. */
  readonly void: readonly string[]
}

/** A row with its median, range, ratios and verdict. */
export interface SummarizedRow extends Omit<Row, 'ratios'> {
  readonly value: Summary
  readonly ratios: readonly SummarizedRatio[]
  readonly verdict: Verdict | undefined
}

/** A ratio with its median, range and verdict. */
interface SummarizedRatio {
  readonly to: string
  readonly value: Summary
  readonly verdict: Verdict | undefined
}

/** Whether a goal is met. */
export interface Verdict {
  readonly goal: Goal
  readonly met: boolean
}

/** Name, question and context of a scenario. */
interface ScenarioFacts extends Pick<SummarizedScenario, 'name' | 'question'> {
  readonly seconds: number
  readonly machine?: MachineDuring
  /** Default: those of bench/goals.ts. */
  readonly goals?: readonly GoalLine[]
}

/**
 * Summarizes a result. Throws a RangeError for an error of the scenario: two rows with one name, a ratio to an unknown row
 * or to one with other rounds, a sample that is not a number, a point that a logarithmic chart cannot show. If rounds have
 * failed, rows and ratios without any sample are left out.
 */
export function summarizeScenario(
  { name, question, seconds, machine, goals = goalsFor(name) }: ScenarioFacts,
  result: ScenarioResult & { readonly failures?: readonly string[] },
): SummarizedScenario {
  const { method, skipped = [], notes = [], failures = [] } = result
  const byName = new Map(result.rows.map(row => [row.name, row]))
  if (byName.size < result.rows.length) throw new RangeError(`scenario ${name} has two rows with one name`)
  const goalOf = (row: string, to?: string) => goals.find(goal => goal.row === row && goal.to === to)?.goal
  const isOptional = (samples: readonly number[]) => failures.length > 0 && samples.length === 0
  const rows = result.rows.flatMap((row): SummarizedRow[] => {
    const samples = measuredSamples(row.samples)
    if (isOptional(samples)) return []
    const value = summarizeFinite(`"${row.name}"`, samples)
    const ratios = (row.ratios ?? []).flatMap(({ to }): SummarizedRatio[] => {
      const other = byName.get(to)
      if (other === undefined && failures.length > 0) return []
      if (other === undefined)
        throw new RangeError(`${name}: "${row.name}" is compared with "${to}", which is not a row`)
      const samples = ratiosByRound(row.samples, other.samples)
      if (isOptional(samples)) return []
      const ratio = summarizeFinite(`"${row.name}" over "${to}"`, samples)
      return [{ to, value: ratio, verdict: judge(goalOf(row.name, to), ratio.median) }]
    })
    return [{ ...row, value, ratios, verdict: judge(goalOf(row.name), value.median) }]
  })
  return { name, question, method, seconds, rows, skipped, notes, failures, ...(machine && { machine }) }
}

/** Summarizes finite samples. JSON has no NaN, so a NaN would be lost in a file. */
function summarizeFinite(what: string, samples: readonly number[]): Summary {
  if (samples.length === 0) throw new RangeError(`${what} has no samples`)
  if (!samples.every(Number.isFinite))
    throw new RangeError(`${what} is not a number in every round: ${samples.join(', ')}`)
  return summarize(samples)
}

function judge(goal: Goal | undefined, median: number): Verdict | undefined {
  if (goal === undefined) return undefined
  return { goal, met: 'atLeast' in goal ? median >= goal.atLeast : median <= goal.atMost }
}

/** A goal of a run with its result. */
export interface JudgedGoal extends Verdict {
  readonly scenario: string
  readonly row: string
  /** The other row of a ratio. Without it, the goal is for the figure itself, in `unit`. */
  readonly to?: string
  readonly unit: string
  readonly value: Summary
  /** Whether the machine changed, so that the goal is neither met nor missed. */
  readonly isVoid: boolean
}

/** Returns the goals of all rows and ratios. */
export function goalsOf(scenarios: readonly SummarizedScenario[]): JudgedGoal[] {
  return scenarios.flatMap(scenario =>
    scenario.rows.flatMap(row => {
      const of = { scenario: scenario.name, row: row.name, unit: row.unit, isVoid: isVoid(scenario) }
      return [
        ...(row.verdict ? [{ ...of, value: row.value, ...row.verdict }] : []),
        ...row.ratios.flatMap(({ to, value, verdict }) => (verdict ? [{ ...of, to, value, ...verdict }] : [])),
      ]
    }),
  )
}

/** Returns whether the machine changed during a scenario. */
export function isVoid({ machine }: Pick<SummarizedScenario, 'machine'>): boolean {
  return machine !== undefined && machine.void.length > 0
}

/** Returns the goals of these scenarios that have no figure: a peer was left out, or rounds failed. */
export function unmeasuredGoals(
  names: readonly string[],
  scenarios: readonly SummarizedScenario[],
  goals: readonly GoalLine[],
): GoalLine[] {
  const judged = new Set(goalsOf(scenarios).map(({ scenario, row, to }) => JSON.stringify([scenario, row, to])))
  return goals.filter(
    ({ scenario, row, to }) => names.includes(scenario) && !judged.has(JSON.stringify([scenario, row, to])),
  )
}
