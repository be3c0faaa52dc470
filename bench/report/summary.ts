import type { Goal, Row, ScenarioResult } from '../support/scenario.ts'
import { ratiosByRound, type Summary, summarize } from './statistics.ts'

/** A result as it is printed and written as JSON: samples with their medians, ranges and ratios. */
export interface SummarizedScenario extends Pick<ScenarioResult, 'method'> {
  readonly name: string
  readonly question: string
  readonly seconds: number
  readonly rows: readonly SummarizedRow[]
  readonly skipped: readonly string[]
  readonly notes: readonly string[]
}

/** A row with its median, range, ratios and verdict. */
export interface SummarizedRow extends Omit<Row, 'ratios' | 'goal'> {
  readonly value: Summary
  readonly ratios: readonly SummarizedRatio[]
  readonly verdict: Verdict | undefined
}

/** A ratio with its median, range and verdict. */
export interface SummarizedRatio {
  readonly to: string
  readonly value: Summary
  readonly verdict: Verdict | undefined
}

/** Whether a goal is met. */
export interface Verdict {
  readonly goal: Goal
  readonly met: boolean
}

/**
 * Summarizes a result. Throws a RangeError for an error of the scenario: two rows with one name, a ratio to an unknown row
 * or to one with other rounds, a sample that is not a number, a point that a logarithmic chart cannot show.
 */
export function summarizeScenario(
  { name, question }: { name: string; question: string },
  result: ScenarioResult,
  seconds: number,
): SummarizedScenario {
  const byName = new Map(result.rows.map(row => [row.name, row]))
  if (byName.size < result.rows.length) throw new RangeError(`scenario ${name} has two rows with one name`)
  const rows = result.rows.map(row => {
    const value = summarizeFinite(`"${row.name}"`, row.samples)
    if (row.plot && !(row.plot.x > 0 && value.min > 0))
      throw new RangeError(`"${row.name}" cannot be drawn in a chart: its x and its figures must be above 0`)
    const ratios = (row.ratios ?? []).map(({ to, goal }) => {
      const other = byName.get(to)
      if (other === undefined)
        throw new RangeError(`${name}: "${row.name}" is compared with "${to}", which is not a row`)
      const ratio = summarizeFinite(`"${row.name}" over "${to}"`, ratiosByRound(row.samples, other.samples))
      return { to, value: ratio, verdict: judge(goal, ratio.median) }
    })
    return { ...row, value, ratios, verdict: judge(row.goal, value.median) }
  })
  const { method, skipped = [], notes = [] } = result
  return { name, question, method, seconds, rows, skipped, notes }
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
}

/** Returns the goals of all rows and ratios. */
export function goalsOf(scenarios: readonly SummarizedScenario[]): JudgedGoal[] {
  return scenarios.flatMap(scenario =>
    scenario.rows.flatMap(row => {
      const of = { scenario: scenario.name, row: row.name, unit: row.unit }
      return [
        ...(row.verdict ? [{ ...of, value: row.value, ...row.verdict }] : []),
        ...row.ratios.flatMap(({ to, value, verdict }) => (verdict ? [{ ...of, to, value, ...verdict }] : [])),
      ]
    }),
  )
}
