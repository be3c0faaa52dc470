import { Redis } from 'ioredis'
import { insertNative } from '../../clickhouse/client.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { upkeepKeys } from '../../shared/directory/record.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { createSpansBatch } from '../../workers/otlp/traces/spans.ts'
import type { RowBatch } from '../../workers/sink/row-batch.ts'
import { createSpanStatsBatch } from '../../workers/span-stats/stats-batch.ts'
import { countEdges } from '../../workers/upkeep/edges/count-edges.ts'
import { settleMerges, truncateTables } from '../measure/clickhouse-work.ts'
import { meterProcesses } from '../measure/process-meter.ts'
import { linkedPayloads } from '../payloads/linked-payloads.ts'
import {
  BENCH_DATABASE,
  type BenchClickHouse,
  startBenchClickHouse,
  startBenchRedis,
} from '../services/start-stores.ts'
import type { Scenario, ScenarioRun } from '../support/scenario.ts'

/** Spans of a payload, and rows of an insert, as a worker pool has them. */
const SPANS = 200
const BATCH_ROWS = 100_000
/** Inserts of statistics a minute. */
const STATS_INSERTS = 5
const PER = 'CPU s per million spans'

const PARTS = ['decoding', 'counting', 'storing spans', 'storing counts', 'counting calls'] as const
type Costs = Record<(typeof PARTS)[number], number>

/** Measures what the pages of services cost beside storing the spans. */
export const scenario: Scenario = {
  name: 'services',
  question: 'What do rates, durations and calls of services cost, beside decoding and storing the spans?',
  async run(context) {
    const clickhouse = await startBenchClickHouse(context)
    const redis = new Redis((await startBenchRedis(context, { ownRewrites: false })).url(0))
    context.onEnd(() => redis.disconnect())
    const rounds: Costs[] = []
    // The first one is a warm-up.
    for (let round = 0; round <= (context.quick ? 1 : 3); round++) {
      const costs = await measure(context, { clickhouse, redis })
      context.progress(PARTS.map(part => `${part}: ${costs[part].toFixed(3)}`).join(', '))
      if (round > 0) rounds.push(costs)
    }
    const samplesOf = (...parts: (keyof Costs)[]) =>
      rounds.map(costs => parts.reduce((sum, part) => sum + costs[part], 0))
    const row = (name: string, samples: number[], to?: string) => ({
      ...{ name, unit: PER, samples },
      ...(to && { ratios: [{ to }] }),
    })
    return {
      rows: [
        row('worker: decoding', samplesOf('decoding')),
        row('worker: counting', samplesOf('counting'), 'worker: decoding'),
        row('ClickHouse: storing spans', samplesOf('storing spans')),
        row('ClickHouse: storing counts', samplesOf('storing counts'), 'ClickHouse: storing spans'),
        row('ClickHouse: counting calls', samplesOf('counting calls'), 'ClickHouse: storing spans'),
        row('ClickHouse: both', samplesOf('storing counts', 'counting calls'), 'ClickHouse: storing spans'),
      ],
      method: `${rounds.length} rounds after a warm-up, each of ${minutesOf(context)} minutes of arrival with ${SPANS * payloadsPerMinute(context)} realistic spans`,
      notes: [
        'Rows of ClickHouse have the CPU time of its process until its merges have ended, those of the worker that of one thread.',
        'The first span of each trace is called by a client in another payload.',
      ],
      facts: { ClickHouse: clickhouse.version },
    }
  },
}

const minutesOf = ({ quick }: ScenarioRun) => (quick ? 2 : 4)
const payloadsPerMinute = ({ quick }: ScenarioRun) => (quick ? 500 : 2_000)

interface Stage {
  readonly clickhouse: BenchClickHouse
  readonly redis: Redis
}

/** Adds up the CPU seconds of the parts. */
class CostMeter {
  readonly costs = Object.fromEntries(PARTS.map(part => [part, 0])) as Costs
  readonly #clickhouse: BenchClickHouse

  constructor(clickhouse: BenchClickHouse) {
    this.#clickhouse = clickhouse
  }

  onThread<T>(part: keyof Costs, work: () => T): T {
    const { user, system } = process.threadCpuUsage()
    const result = work()
    const after = process.threadCpuUsage()
    this.costs[part] += (after.user - user + after.system - system) / 1e6
    return result
  }

  async onClickHouse(part: keyof Costs, work: () => Promise<void>): Promise<void> {
    const meter = meterProcesses({ clickhouse: this.#clickhouse.pid })
    meter.begin()
    await work()
    await settleMerges(this.#clickhouse.client)
    this.costs[part] += meter.end().clickhouse?.cpuSeconds ?? 0
  }
}

async function measure(context: ScenarioRun, { clickhouse, redis }: Stage): Promise<Costs> {
  const { client } = clickhouse
  await truncateTables(client, BENCH_DATABASE)
  await settleMerges(client)
  const meter = new CostMeter(clickhouse)
  const firstMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 60 * MINUTE_MS
  const minutes = minutesOf(context)
  const batch = createSpansBatch()
  const stats: PayloadFrame[][] = []
  let spans = 0
  await meter.onClickHouse('storing spans', async () => {
    for (let minute = 0; minute < minutes; minute++) {
      const frames: PayloadFrame[] = []
      const perMinute = payloadsPerMinute(context)
      const arrivals = linkedPayloads(SPANS, perMinute, minute * perMinute)
      for (const [i, body] of arrivals.entries()) {
        const receivedAtMs = firstMs + Math.floor((minute + i / arrivals.length) * MINUTE_MS)
        const source = { workspaceId: 'ws_bench', surfaceId: 'srf_bench', receivedAtMs, only: undefined }
        const result = meter.onThread('decoding', () => batch.append(source as never, body))
        if (!result.ok) throw new Error(result.reason)
        spans += result.rows
        if (batch.rows < BATCH_ROWS && i < arrivals.length - 1) continue
        frames.push(...meter.onThread('counting', () => batch.spanStats?.() ?? []).flat())
        await insert(clickhouse, batch, `spans ${spans}`)
        batch.reset()
      }
      stats.push(frames)
    }
  })
  const counts = createSpanStatsBatch()
  await meter.onClickHouse('storing counts', async () => {
    for (const [minute, frames] of stats.entries()) {
      const perInsert = Math.ceil(frames.length / STATS_INSERTS)
      for (let at = 0; at < frames.length; at += perInsert) {
        for (const frame of frames.slice(at, at + perInsert)) {
          meter.onThread('counting', () => counts.append({ ...frame, only: undefined } as never, frame.body))
        }
        await insert(clickhouse, counts, `counts ${minute} ${at}`)
        counts.reset()
      }
    }
  })
  await redis.set(upkeepKeys.edgesBefore, firstMs)
  await meter.onClickHouse('counting calls', () =>
    countEdges({
      ...{ redis, clickhouse: client },
      settledBeforeMs: async () => firstMs + (minutes + 1) * MINUTE_MS,
      assertElected: async () => {},
    }),
  )
  const millions = spans / 1e6
  return Object.fromEntries(PARTS.map(part => [part, meter.costs[part] / millions])) as Costs
}

let rounds = 0

async function insert({ client }: BenchClickHouse, batch: RowBatch, token: string): Promise<void> {
  for (const { table, columns, block } of batch.tables()) {
    const deduplicationToken = `${token} ${rounds++}`
    await insertNative(client, { table, columns, block, deduplicationToken, timeoutMs: 60_000 })
  }
}
