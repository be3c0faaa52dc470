import { errorMessage } from '../../shared/runtime/errors.ts'
import type { Row, Sample, ScenarioRun } from './scenario.ts'

/** One of several implementations that are measured in every round. */
interface RoundContender<T> {
  readonly name: string
  measure(round: number): Promise<T>
}

/** Results of the rounds of one contender, in order. Undefined: the round failed. */
export type Results<T> = readonly (T | undefined)[]

/** How rounds are measured. */
interface RoundsPlan<T> {
  /** Name of the measurement in progress and failures, such as "200 spans". */
  readonly what: string
  readonly rounds: number
  readonly contenders: readonly RoundContender<T>[]
  /** Formats a result for the progress. */
  describe(result: T): string
}

/**
 * Measures every contender once a round. Each round begins with the next contender, so that no contender always follows
 * the same other one. A measurement that fails is reported, and the others continue.
 */
export async function measureRounds<T>(
  { progress, failed }: Pick<ScenarioRun, 'progress' | 'failed'>,
  { what, rounds, contenders, describe }: RoundsPlan<T>,
): Promise<ReadonlyMap<string, Results<T>>> {
  const results = new Map(contenders.map(({ name }) => [name, [] as (T | undefined)[]]))
  for (let round = 1; round <= rounds; round++) {
    for (const { name, measure } of rotated(contenders, round - 1)) {
      const title = `${what}, round ${round}/${rounds}: ${name}`
      const result = await measure(round).catch(error => {
        failed(`${title}: ${errorMessage(error)}`)
        return undefined
      })
      results.get(name)?.push(result)
      if (result !== undefined) progress(`${title} ${describe(result)}`)
    }
  }
  return results
}

/** Returns the result of a part of a scenario. Reports its failure and returns `otherwise`, so that the other parts are kept. */
export async function attempt<T>(
  { failed }: Pick<ScenarioRun, 'failed'>,
  what: string,
  otherwise: T,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    failed(`${what}: ${errorMessage(error)}`)
    return otherwise
  }
}

/** Returns the items with the first `count` of them at the end. */
export function rotated<T>(items: readonly T[], count: number): T[] {
  const start = items.length === 0 ? 0 : count % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}

/** Returns the results of the rounds that succeeded. */
export function succeeded<T>(results: Results<T>): T[] {
  return results.filter(result => result !== undefined)
}

/** Returns the samples of a row. */
export function samplesOf<T>(results: Results<T>, of: (result: T) => number): Sample[] {
  return results.map(result => (result === undefined ? null : of(result)))
}

/** Returns the rows of a contender, or none if all its rounds failed. */
export function rowsOf<T>(results: Results<T>, toRows: (results: Results<T>) => Row[]): Row[] {
  return succeeded(results).length === 0 ? [] : toRows(results)
}
