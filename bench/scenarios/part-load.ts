import type { LoadMode } from '../load/plan.ts'
import { measureCapacity, measureStored, SPANS, type Stored } from '../measure/measure-stored.ts'
import { summarize } from '../report/statistics.ts'
import { startInstallation, startStage } from '../services/start-stage.ts'
import { measureRounds, type Results, rowsOf, samplesOf, succeeded } from '../support/rounds.ts'
import type { Row, Scenario } from '../support/scenario.ts'

const SHARES = [1, 0.5, 0.1]
/** Processes of the product. The cost of ClickHouse depends on its merges and has its own row. */
const OWN = ['edge', 'worker', 'Redis']

/** Measures the cost of a span while the pipeline is not full. */
export const scenario: Scenario = {
  name: 'part-load',
  question: 'What does a million spans cost when the pipeline receives half or a tenth of what it can store?',
  async run(context) {
    const stage = await startStage(context)
    const { pids, plan } = await startInstallation(stage)
    const measure = async (mode: LoadMode, durationMs: number) => {
      await stage.redis.rewriteLog()
      return measureStored(stage, pids, { ...plan, mode, durationMs })
    }
    const capacity = await measureCapacity(context, durationMs => measure({ kind: 'closed' }, durationMs))
    const [rounds, durationMs] = context.quick ? [1, 2_000] : [3, 8_000]
    const measured = await measureRounds(context, {
      what: 'load',
      rounds,
      contenders: SHARES.map(share => ({
        name: nameOf(share),
        measure: () => {
          const requestsPerSecond = (share * capacity) / SPANS
          return measure(share === 1 ? { kind: 'closed' } : { kind: 'open', requestsPerSecond }, durationMs)
        },
      })),
      describe: ({ spans, seconds }) => `${Math.round(spans / seconds).toLocaleString('en')} spans/s`,
    })
    return {
      rows: SHARES.flatMap(share => toRows(share, measured.get(nameOf(share)) ?? [])),
      method: `a warm-up and two runs for capacity; then ${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${durationMs / 1_000} s at each share of it, in rotating order`,
      notes: [
        'CPU time of all processes from the first request until the last span is stored and merged. Capacity is a closed loop; the shares are an open loop, whose requests are due at fixed times. Every process also spends time that no request causes, and less work has to bear it.',
      ],
      facts: stage.facts,
    }
  },
}

const nameOf = (share: number) => (share === 1 ? 'at capacity' : `at ${Math.round(share * 100)} % of capacity`)

function toRows(share: number, results: Results<Stored>): Row[] {
  const costRow = (kind: string, processes: readonly string[]): Row => ({
    name: `${kind} ${nameOf(share)}`,
    unit: 'CPU s per million spans',
    samples: samplesOf(results, round => processes.reduce((sum, name) => sum + perMillion(name, round), 0)),
    ...(share < 1 && { ratios: [{ to: `${kind} ${nameOf(1)}` }] }),
  })
  return rowsOf(results, () => {
    const rounds = succeeded(results)
    const own = costRow('edge, worker and Redis', OWN)
    const seconds = Object.keys(rounds[0]?.use ?? {}).map(
      name => [name, summarize(rounds.map(round => perMillion(name, round))).median] as const,
    )
    const rate = summarize(rounds.map(({ spans, seconds }) => spans / seconds)).median
    return [
      {
        ...own,
        cpu: { per: 'million spans', seconds: Object.fromEntries(seconds) },
        details: { rate: `${Math.round(rate).toLocaleString('en')} spans/s` },
      },
      costRow('ClickHouse', ['ClickHouse']),
    ]
  })
}

const perMillion = (name: string, { use, spans }: Stored) => ((use[name]?.cpuSeconds ?? 0) / spans) * 1e6
