import { rm } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { MINUTE_MS } from '../schemas/units.ts'
import { MemoryTrend, MOST_GROWTH, residentBytes } from '../test/support/hostile/memory-trend.ts'
import type { LoadPlan, LoadResult } from './load/plan.ts'
import { type LoadGenerator, startGenerator } from './load/start-generator.ts'
import { type BenchEdge, QUEUE_LIMITS, startEdge, startWorkers } from './services/start-product.ts'
import { BENCH_DATABASE, type BenchClickHouse, startBenchClickHouse, startBenchRedis } from './services/start-stores.ts'
import { pollUntil } from './support/poll-until.ts'
import { makeDataDir } from './support/run-scenario.ts'
import type { ScenarioContext } from './support/scenario.ts'

const USAGE = `npm run soak -- [--minutes NUMBER] [--share NUMBER]

  --minutes NUMBER  length of the load (default: 30)
  --share NUMBER    part of the capacity, which is measured first, that is sent (default: 0.7)

Sends traces, logs and metrics at a steady rate. Fails if the memory of edge, worker or Redis in the last fifth is over
${MOST_GROWTH} times that in the second fifth, or if what is stored is not what was accepted. BENCH_DIR is the directory of the
data; a run at 100,000 records a second writes about 10 GB in 30 minutes.`

/** The loads, each of its own generator. */
const SIGNALS = [
  { signal: 'traces', table: 'spans', records: 200 },
  { signal: 'logs', table: 'logs', records: 100 },
  { signal: 'metrics', table: 'metric_points', records: 200 },
] as const
type Load = (typeof SIGNALS)[number]

const CONNECTIONS = 24
const WARM_UP_MS = 5_000
/**
 * Length of the measurement of the capacity, or a sixth of the run if that is shorter. A few seconds would show what the
 * machine takes while ClickHouse has nothing to merge, more than it takes for half an hour.
 */
const CAPACITY_MS = 300_000
const STORED_DEADLINE_MS = 300_000
/** Longer than any batch takes. */
const SETTLED_MS = 10_000
/** Spans whose ids ClickHouse compares at once. */
const COMPARED_AT_ONCE = 20_000_000
/** Processes whose memory must not grow. ClickHouse fills its caches up to their limits, so its memory is only shown. */
const FLAT = ['edge', 'worker', 'Redis']

const endSteps: (() => Promise<void> | void)[] = []
async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  if (options === undefined) {
    console.error(USAGE)
    return 2
  }
  const dir = await makeDataDir()
  endSteps.push(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void end().then(() => process.exit(130)))
  try {
    return (await soak(dir, options)) ? 0 : 1
  } catch (error) {
    console.error(error)
    return 1
  } finally {
    await end()
  }
}

function readOptions(args: readonly string[]): { minutes: number; share: number } | undefined {
  try {
    const options = { minutes: { type: 'string', default: '30' }, share: { type: 'string', default: '0.7' } } as const
    const { values } = parseArgs({ args: [...args], options })
    const [minutes, share] = [Number(values.minutes), Number(values.share)]
    return minutes > 0 && share > 0 && share <= 1 ? { minutes, share } : undefined
  } catch {
    return undefined
  }
}

async function end(): Promise<void> {
  for (const step of endSteps.splice(0).reverse()) await step()
}

/** Returns whether memory was flat and everything was stored. */
async function soak(dir: string, { minutes, share }: { minutes: number; share: number }): Promise<boolean> {
  const context: ScenarioContext = { quick: false, dir, progress, onEnd: step => void endSteps.push(step) }
  const redis = await startBenchRedis(context, { ownRewrites: true })
  const clickhouse = await startBenchClickHouse(context)
  const edge = await startEdge(context, redis, QUEUE_LIMITS)
  const workers = await startWorkers(context, redis, clickhouse, ['spans', 'logs', 'metrics'])
  const generators = await Promise.all(SIGNALS.map(startGenerator))
  for (const generator of generators) context.onEnd(() => generator.stop())
  const send = (modeOf: (index: number) => LoadPlan['mode'], durationMs: number) =>
    Promise.all(SIGNALS.map((load, i) => sendLoad(generators[i] as LoadGenerator, edge, load, modeOf(i), durationMs)))

  progress('warming up')
  const warm = await send(() => ({ kind: 'closed' }), WARM_UP_MS)
  await untilStored(
    clickhouse,
    warm.map(({ accepted }) => accepted),
  )
  const capacityMs = Math.min(CAPACITY_MS, (minutes * MINUTE_MS) / 6)
  progress(`measuring the capacity for ${capacityMs / 1_000} s`)
  const startedAt = performance.now()
  const most = await send(() => ({ kind: 'closed' }), capacityMs)
  await untilStored(
    clickhouse,
    most.map(({ accepted }, i) => accepted + (warm[i] as Sent).accepted),
  )
  const seconds = (performance.now() - startedAt) / 1_000
  const rates = most.map(({ requests }) => (requests / seconds) * share)
  progress(`capacity: ${describe(most.map(({ accepted }) => accepted / seconds))} a second; sending ${share} of it`)

  for (const { table } of SIGNALS) await truncate(clickhouse, table)
  const pids = { edge: edge.pid, worker: workers.pid, Redis: redis.pid, ClickHouse: clickhouse.pid }
  const trends = Object.entries(pids).map(([name, pid]) => ({ name, trend: new MemoryTrend(() => residentBytes(pid)) }))
  for (const { trend } of trends) trend.start()
  const sent = await send(i => ({ kind: 'open', requestsPerSecond: rates[i] as number }), minutes * MINUTE_MS)
  for (const { trend } of trends) trend.stop()

  for (const { name, trend } of trends) console.log(`${name.padEnd(10)} ${trend}`)
  const grown = trends.filter(({ name, trend }) => FLAT.includes(name) && trend.growth > MOST_GROWTH)
  for (const { name } of grown) console.log(`FAILED: the memory of ${name} grew`)
  const faults = await compare(clickhouse, sent)
  for (const fault of faults) console.log(`FAILED: ${fault}`)
  return grown.length === 0 && faults.length === 0
}

interface Sent {
  readonly requests: number
  /** Records that were accepted. */
  readonly accepted: number
  /** Records of requests without a certain answer, which are stored or not. */
  readonly unknown: number
  readonly result: LoadResult
}

async function sendLoad(
  generator: LoadGenerator,
  edge: BenchEdge,
  { signal, records }: Load,
  mode: LoadPlan['mode'],
  durationMs: number,
): Promise<Sent> {
  const result = await generator.run({
    port: edge.port,
    path: `/drain/v1/${signal}`,
    headers: { 'x-service-public-key': edge.publicKey, 'content-type': 'application/x-protobuf' },
    connections: CONNECTIONS,
    payload: { signal, spans: records, pool: 4 * CONNECTIONS, freshIds: true },
    mode,
    warmUpMs: 0,
    durationMs,
  })
  const { 200: requests = 0, 429: _refused, ...unknown } = { ...result.statuses, ...result.faults }
  const unknownRequests = Object.values(unknown).reduce((sum, count) => sum + count, 0)
  return { requests, accepted: requests * records, unknown: unknownRequests * records, result }
}

/** Returns the differences between what was accepted and what is stored. */
async function compare(clickhouse: BenchClickHouse, sent: readonly Sent[]): Promise<string[]> {
  await untilStored(
    clickhouse,
    sent.map(({ accepted }) => accepted),
  )
  const rows = await settled(clickhouse)
  const faults: string[] = []
  for (const [i, { table }] of SIGNALS.entries()) {
    const { accepted, unknown, result } = sent[i] as Sent
    const found = rows[i] as number
    const { p50Ms, p99Ms } = result.latency
    console.log(
      `${table}: ${accepted} accepted, ${unknown} unknown, ${found} stored; answers ${JSON.stringify({ ...result.statuses, ...result.faults })}, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`,
    )
    if (found < accepted || found > accepted + unknown)
      faults.push(`${found} ${table} are stored of ${accepted} accepted`)
  }
  const spans = rows[0] as number
  const slices = Math.ceil(spans / COMPARED_AT_ONCE)
  let distinct = 0
  for (let slice = 0; slice < slices; slice++) {
    distinct += await number(
      clickhouse,
      `SELECT uniqExact(trace_id, span_id) FROM spans WHERE cityHash64(span_id) % ${slices} = ${slice}`,
    )
  }
  if (distinct !== spans) faults.push(`${spans - distinct} spans are stored more than once`)
  return faults
}

async function untilStored(clickhouse: BenchClickHouse, rows: readonly number[]): Promise<void> {
  await pollUntil(
    'everything accepted is stored',
    STORED_DEADLINE_MS,
    async () => (await stored(clickhouse)).every((count, i) => count >= (rows[i] as number)),
    200,
  )
}

/** Returns the number of rows when it no longer grows: requests whose answer is missing may be stored after the others. */
async function settled(clickhouse: BenchClickHouse): Promise<number[]> {
  let rows: number[] = []
  await pollUntil(
    'nothing more is stored',
    STORED_DEADLINE_MS,
    async () => {
      const before = rows
      rows = await stored(clickhouse)
      return rows.every((count, i) => count === before[i])
    },
    SETTLED_MS,
  )
  return rows
}

const stored = (clickhouse: BenchClickHouse) =>
  Promise.all(SIGNALS.map(({ table }) => number(clickhouse, `SELECT count() FROM ${table}`)))

async function number({ client }: BenchClickHouse, query: string): Promise<number> {
  const [row] = await (await client.query({ query, format: 'JSONCompactEachRow' })).json<[string]>()
  return Number(row?.[0])
}

async function truncate({ client }: BenchClickHouse, table: string): Promise<void> {
  await client.command({ query: `TRUNCATE TABLE ${BENCH_DATABASE}.${table}` })
}

const describe = (rates: readonly number[]) =>
  SIGNALS.map(({ table }, i) => `${Math.round(rates[i] as number).toLocaleString('en')} ${table}`).join(', ')

function progress(text: string): void {
  console.error(`soak  ${new Date().toISOString().slice(11, 19)}  ${text}`)
}

process.exitCode = await main(process.argv.slice(2))
