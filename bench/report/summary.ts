import type { Goal, Row, ScenarioResult } from '../support/scenario.ts'
import { ratiosByRound, type Summary, summarize } from './statistics.ts'

/** A result as it is printed, written and kept as JSON: samples with what they come to. */
export interface SummarizedScenario extends Pick<ScenarioResult, 'method'> {
  readonly name: string
  readonly question: string
  readonly seconds: number
  readonly rows: readonly SummarizedRow[]
  readonly skipped: readonly string[]
  readonly notes: readonly string[]
}

export interface SummarizedRow extends Omit<Row, 'ratios' | 'goal'> {
  readonly value: Summary
  readonly ratios: readonly SummarizedRatio[]
  readonly verdict: Verdict | undefined
}

export interface SummarizedRatio {
  readonly to: string
  readonly value: Summary
  readonly verdict: Verdict | undefined
}

export interface Verdict {
  readonly goal: Goal
  readonly met: boolean
}

/**
 * Throws a RangeError for what is a fault of the scenario: two rows of one name, a ratio to no row or to one of other
 * rounds, a figure that is no number, a place that no chart has.
 */
export function summarizeScenario(
  { name, question }: { name: string; question: string },
  result: ScenarioResult,
  seconds: number,
): SummarizedScenario {
  const byName = new Map(result.rows.map(row => [row.name, row]))
  if (byName.size < result.rows.length) throw new RangeError(`scenario ${name} has two rows of one name`)
  const rows = result.rows.map(row => {
    const value = summarizeFinite(`"${row.name}"`, row.samples)
    if (row.plot && !(row.plot.x > 0 && value.min > 0))
      throw new RangeError(`"${row.name}" has no place in a chart: its x and its figures must be above 0`)
    const ratios = (row.ratios ?? []).map(({ to, goal }) => {
      const other = byName.get(to)
      if (other === undefined) throw new RangeError(`${name}: "${row.name}" is compared with "${to}", which is no row`)
      const ratio = summarizeFinite(`"${row.name}" over "${to}"`, ratiosByRound(row.samples, other.samples))
      return { to, value: ratio, verdict: judge(goal, ratio.median) }
    })
    return { ...row, value, ratios, verdict: judge(row.goal, value.median) }
  })
  const { method, skipped = [], notes = [] } = result
  return { name, question, method, seconds, rows, skipped, notes }
}

/** JSON has no NaN: kept in a file, one would come back as nothing. */
function summarizeFinite(what: string, samples: readonly number[]): Summary {
  if (samples.length === 0) throw new RangeError(`${what} has no samples`)
  if (!samples.every(Number.isFinite))
    throw new RangeError(`${what} is no number in every round: ${samples.join(', ')}`)
  return summarize(samples)
}

function judge(goal: Goal | undefined, median: number): Verdict | undefined {
  if (goal === undefined) return undefined
  return { goal, met: 'atLeast' in goal ? median >= goal.atLeast : median <= goal.atMost }
}

/** One goal of a run, and what came of it. */
export interface JudgedGoal extends Verdict {
  readonly scenario: string
  readonly row: string
  /** The row that it is a ratio to; otherwise it is the figure itself, in `unit`. */
  readonly to?: string
  readonly unit: string
  readonly value: Summary
}

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
