import { Redis } from 'ioredis'
import { MINUTE_MS } from '../../schemas/units.ts'
import type { LoadPlan } from '../load/plan.ts'
import { startGenerator } from '../load/start-generator.ts'
import { truncateTables } from '../measure/clickhouse-work.ts'
import { measureStored, SPANS, tracesPlan } from '../measure/measure-stored.ts'
import { measureSustained, type Sustained } from '../measure/measure-sustained.ts'
import type { Written, WrittenTable } from '../measure/part-watch.ts'
import { durationText } from '../report/figure-text.ts'
import { QUEUE_LIMITS, startEdge, startWorkers } from '../services/start-product.ts'
import { BENCH_DATABASE, type BenchRedis, startBenchClickHouse, startBenchRedis } from '../services/start-stores.ts'
import { attempt } from '../support/rounds.ts'
import type { Row, Scenario } from '../support/scenario.ts'

const SHARE = 0.8
const CONNECTIONS = 64
/**
 * Length of the measurement of the capacity, or a quarter of the load if that is shorter. A few seconds would show what the
 * machine takes while ClickHouse has nothing to merge.
 */
const CAPACITY_MS = 300_000

/** Measures what minutes cannot show: merges of merges, rewrites of Redis' log, memory. */
export const scenario: Scenario = {
  name: 'sustained',
  question:
    'What does a million realistic spans cost when they arrive for 20 minutes at 80 % of the capacity, how often is each ' +
    'row written again by merges, and is everything that was accepted stored once?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: true })
    const clickhouse = await startBenchClickHouse(context)
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const edge = await startEdge(context, redis, QUEUE_LIMITS)
    const workers = await startWorkers(context, redis, clickhouse, ['traces'])
    const pids = { edge: edge.pid, worker: workers.pid, Redis: redis.pid, ClickHouse: clickhouse.pid }
    const plan: Omit<LoadPlan, 'mode' | 'durationMs'> = {
      ...tracesPlan(edge.port, [edge.publicKey]),
      connections: CONNECTIONS,
      payload: { spans: SPANS, pool: 8 * CONNECTIONS, freshIds: true, data: 'realistic' },
      warmUpMs: 0,
    }
    const capacityOver = async (durationMs: number) => {
      const plans = [{ ...plan, mode: { kind: 'closed' as const }, durationMs }]
      const { spans, seconds } = await measureStored([generator], clickhouse, { plans, pids })
      return spans / seconds
    }
    await capacityOver(context.quick ? 1_000 : 3_000)
    const minutes = context.sustainedMinutes
    const capacityMs = Math.min(CAPACITY_MS, (minutes * MINUTE_MS) / 4)
    const capacity = await capacityOver(capacityMs)
    const rate = Math.round(SHARE * capacity)
    context.progress(`${rate.toLocaleString('en')} spans/s for ${durationText(minutes * 60)}`)
    await truncateTables(clickhouse.client, BENCH_DATABASE)
    const rewritesBefore = await countRewrites(redis)
    const rows = await attempt(context, `${durationText(minutes * 60)} of load`, [], async () => {
      const sustained = await measureSustained(
        { generator, clickhouse, pids },
        { ...plan, mode: { kind: 'open', requestsPerSecond: rate / SPANS }, durationMs: minutes * MINUTE_MS },
      )
      assertStored(sustained)
      return toRows(sustained, (await countRewrites(redis)) - rewritesBefore)
    })
    return {
      rows: [{ name: 'capacity', unit: 'spans/s', samples: [capacity] }, ...rows],
      method: `a warm-up and a run of ${durationText(capacityMs / 1_000)} for capacity, then ${durationText(minutes * 60)} at ${SHARE * 100} % of it, read at each quarter`,
      notes: [
        `Realistic spans as in "pipeline", ${SPANS} a payload, none as gzip, because the ids of compressed bodies would repeat and be stored in less space than real ones. Requests are due at fixed times.`,
        'The samples of a row are the quarters of the load, one after the other. ClickHouse of the whole load includes the merges after it.',
        '"Written again" counts the rows of all merged parts for a row that was inserted, and "bytes written" is inserts and merges together, for a byte of the inserts. ClickHouse itself counts the rows of all tables. The figures of one table are from the parts that were seen in looks twice a second, so they are lower bounds, too low for small tables, whose parts live shorter.',
      ],
      facts: { Redis: redis.version, ClickHouse: clickhouse.version },
    }
  },
}

/** Throws if an accepted span is missing or stored twice. Requests without a known answer may be stored or not. */
function assertStored({ accepted, stored, unknownRequests }: Sustained): void {
  if (stored >= accepted && stored <= accepted + unknownRequests * SPANS) return
  throw new Error(`${stored} spans are stored, ${accepted} were accepted and ${unknownRequests} requests are unknown`)
}

async function countRewrites(redis: BenchRedis): Promise<number> {
  const admin = new Redis(redis.url(0))
  try {
    return Number(/^aof_rewrites:(\d+)/m.exec(await admin.info('persistence'))?.[1] ?? 0)
  } finally {
    admin.disconnect()
  }
}

function toRows({ load, slices, use, written, stored, unknownRequests }: Sustained, rewrites: number): Row[] {
  const cost = (name: string, processes: readonly string[]): Row => ({
    name,
    unit: 'CPU s per million spans',
    samples: slices.map(
      ({ cpuSeconds, spans }) =>
        (processes.reduce((sum, process) => sum + (cpuSeconds[process] ?? 0), 0) / spans) * 1e6,
    ),
  })
  const total = Object.entries(use).map(([name, { cpuSeconds }]) => [name, (cpuSeconds / stored) * 1e6] as const)
  const { 200: ok = 0, 429: refused = 0 } = load.statuses
  return [
    {
      name: 'stored',
      unit: 'spans/s',
      samples: slices.map(({ spans, seconds }) => spans / seconds),
      cpu: { per: 'million spans', seconds: Object.fromEntries(total) },
      peakMemoryBytes: Object.fromEntries(Object.entries(use).map(([name, one]) => [name, one.peakMemoryBytes])),
      details: {
        spans: stored.toLocaleString('en'),
        refused: `${((refused / (ok + refused)) * 100).toFixed(2)} %`,
        'due to acknowledged, p50 / p99 / longest': [load.latency.p50Ms, load.latency.p99Ms, load.latency.maxMs]
          .map(ms => `${ms.toFixed(1)} ms`)
          .join(' / '),
        'rewrites of Redis’ log': String(rewrites),
      },
    },
    cost('ClickHouse', ['ClickHouse']),
    cost('edge, worker and Redis', ['edge', 'worker', 'Redis']),
    { name: 'requests with another answer than 200 and 429, or none', unit: 'requests', samples: [unknownRequests] },
    ...['edge', 'worker'].map(process => ({
      name: `peak memory of the ${process}`,
      unit: 'MB',
      samples: [(use[process]?.peakMemoryBytes ?? 0) / 1e6],
    })),
    writtenRow(written),
    ...written.tables.filter(({ insertedRows }) => insertedRows > 0).flatMap(tableRows),
  ]
}

function writtenRow({ insertedRows, mergedRows, tables }: Written): Row {
  const seen = tables.reduce((sum, table) => sum + table.mergedRows, 0)
  return {
    name: 'all tables: written again',
    unit: 'times a row',
    samples: [mergedRows / insertedRows],
    details: { rows: insertedRows.toLocaleString('en'), 'seen in parts': `${Math.round((seen / mergedRows) * 100)} %` },
  }
}

function tableRows({ table, insertedRows, insertedBytes, mergedRows, mergedBytes, inserts, merges }: WrittenTable) {
  const whole = (value: number) => value.toLocaleString('en')
  return [
    {
      name: `${table}: written again`,
      unit: 'times a row',
      samples: [mergedRows / insertedRows],
      details: { rows: whole(insertedRows), inserts: whole(inserts), merges: whole(merges) },
    },
    {
      name: `${table}: bytes written`,
      unit: 'a byte inserted',
      samples: [(insertedBytes + mergedBytes) / insertedBytes],
      details: { 'bytes a row, inserted': (insertedBytes / insertedRows).toFixed(1) },
    },
  ]
}
