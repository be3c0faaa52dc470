import { errorMessage } from '../../../shared/runtime/errors.ts'
import type { TraceTarget } from '../../data/stored-traces.ts'
import { percentile } from '../../report/statistics.ts'
import type { ReadBy } from '../../services/start-trace-reader.ts'
import { succeeded } from '../../support/rounds.ts'
import type { Row, ScenarioRun } from '../../support/scenario.ts'
import type { SpanSource } from '../measure-storing-more.ts'
import { timeEach } from './measure-gets.ts'
import { LARGE_TRACE, type ReadDeps } from './measure-reads.ts'

/** Large traces to read, how often, and the load meanwhile. */
interface ConditionPlan {
  readonly by: ReadBy
  readonly targets: readonly TraceTarget[]
  readonly rounds: number
  readonly durationMs: number
  readonly spansPerSecond: number
}

/** Returns a row for p50 and one for p99, with a sample a round. Undefined: the round failed. */
function latencyRows(name: string, rounds: readonly (readonly number[] | undefined)[], ratioTo?: string): Row[] {
  const row = (suffix: string, unit: string, quantile: number): Row => ({
    name: `${name}${suffix}`,
    unit,
    samples: rounds.map(round => (round === undefined ? null : percentile(round, quantile))),
    ...(ratioTo !== undefined && { ratios: [{ to: `${ratioTo}${suffix}` }] }),
  })
  if (succeeded(rounds).length === 0) return []
  return [row('', 'ms, p50', 0.5), row(', p99', 'ms, p99', 0.99)]
}

/**
 * Reads traces for some seconds, then as long while spans arrive at this rate. Both in each round, so that the ratio is
 * of the same moment.
 */
export async function measureWhileIngesting(
  { reader }: ReadDeps,
  source: SpanSource,
  { progress, failed }: Pick<ScenarioRun, 'progress' | 'failed'>,
  { by, rounds, targets, spansPerSecond, durationMs }: ConditionPlan,
): Promise<Row[]> {
  let next = 0
  const readUntil = async (isDone: () => boolean) => {
    const times: number[] = []
    while (!isDone()) {
      const target = targets[next++ % targets.length] as TraceTarget
      times.push(...(await timeEach(1, async () => void (await reader.receive(target, by)))))
    }
    return times
  }
  const before: number[][] = []
  const during: (number[] | undefined)[] = []
  for (let round = 1; round <= rounds; round++) {
    const until = performance.now() + durationMs
    before.push(await readUntil(() => performance.now() >= until))
    let isStored = false
    const storing = source.storeAtRate(spansPerSecond, durationMs).finally(() => {
      isStored = true
    })
    const [times, stored] = await Promise.allSettled([readUntil(() => isStored), storing])
    const failure = [times, stored].find(result => result.status === 'rejected')
    if (failure) failed(`reads while ingesting, round ${round}/${rounds}: ${errorMessage(failure.reason)}`)
    during.push(failure === undefined && times.status === 'fulfilled' ? times.value : undefined)
    progress(`reads while ingesting, round ${round}/${rounds}`)
  }
  const nameOf = (condition: string) => `${LARGE_TRACE[by]}, ${condition}`
  const nameBefore = nameOf('before ingesting')
  return [
    ...latencyRows(nameBefore, before),
    ...latencyRows(nameOf('while ingesting at half load'), during, nameBefore),
  ]
}
