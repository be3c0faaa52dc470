import type { Goal, Row, ScenarioResult } from './scenario.ts'
import { ratiosByRound, type Summary, summarize } from './statistics.ts'

/** A result as it is printed, written and kept as JSON: samples with what they come to. */
export interface SummarizedScenario {
  readonly name: string
  readonly question: string
  readonly seconds: number
  readonly rows: readonly SummarizedRow[]
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

/** Throws a RangeError when a ratio names no row, or one of other rounds: a fault of the scenario. */
export function summarizeScenario(
  { name, question }: { name: string; question: string },
  result: ScenarioResult,
  seconds: number,
): SummarizedScenario {
  const byName = new Map(result.rows.map(row => [row.name, row]))
  if (byName.size < result.rows.length) throw new RangeError(`scenario ${name} has two rows of one name`)
  const rows = result.rows.map(row => {
    const value = summarize(row.samples)
    const ratios = (row.ratios ?? []).map(({ to, goal }) => {
      const other = byName.get(to)
      if (other === undefined) throw new RangeError(`${name}: "${row.name}" is compared with "${to}", which is no row`)
      const ratio = summarize(ratiosByRound(row.samples, other.samples))
      return { to, value: ratio, verdict: judge(goal, ratio.median) }
    })
    return { ...row, value, ratios, verdict: judge(row.goal, value.median) }
  })
  return { name, question, seconds, rows, notes: result.notes ?? [] }
}

function judge(goal: Goal | undefined, median: number): Verdict | undefined {
  if (goal === undefined) return undefined
  return { goal, met: 'atLeast' in goal ? median >= goal.atLeast : median <= goal.atMost }
}

export interface GoalCount {
  readonly met: number
  readonly missed: number
}

export function countGoals(scenarios: readonly SummarizedScenario[]): GoalCount {
  const verdicts = scenarios
    .flatMap(scenario => scenario.rows)
    .flatMap(row => [row.verdict, ...row.ratios.map(ratio => ratio.verdict)])
    .filter(verdict => verdict !== undefined)
  const met = verdicts.filter(verdict => verdict.met).length
  return { met, missed: verdicts.length - met }
}
