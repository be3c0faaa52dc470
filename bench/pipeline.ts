import { freePort } from '../deploy/local/ports.ts'
import type { LoadResult } from './load/plan.ts'
import { type LoadGenerator, startGenerator } from './load/start-generator.ts'
import { TRACES_TABLE } from './peers/otlp-rows.ts'
import { settleMerges, truncateTables, writtenBlocks } from './support/clickhouse-work.ts'
import { pollUntil } from './support/poll-until.ts'
import { meterProcesses, type ProcessUse } from './support/process-meter.ts'
import { readMetric } from './support/read-metric.ts'
import type { Goal, Row, Scenario, ScenarioContext } from './support/scenario.ts'
import { startProcess } from './support/start-process.ts'
import { startEdge, startWorkers } from './support/start-product.ts'
import {
  BENCH_DATABASE,
  type BenchClickHouse,
  type BenchRedis,
  startBenchClickHouse,
  startBenchRedis,
} from './support/start-stores.ts'
import { summarize } from './support/statistics.ts'

const CONNECTIONS = 64
const PRODUCT = 'product'
const PEER = 'Fastify, job per request, protobufjs, JSONEachRow'
const PEER_DATABASE = 'peer'

/** What may wait in Redis: some seconds of work, so that workers never wait for clients that were told to come back in one. */
const QUEUE_BYTES = 256 * 1024 * 1024

/** By number of spans in a payload (issue 4). */
const GOALS: ReadonlyMap<number, { spansPerSecond: Goal; overPeer?: Goal }> = new Map([
  [200, { spansPerSecond: { atLeast: 250_000 }, overPeer: { atLeast: 6 } }],
  [20, { spansPerSecond: { atLeast: 150_000 } }],
])

interface Contender {
  readonly name: string
  readonly port: number
  readonly publicKey: string
  readonly pids: Readonly<Record<string, number>>
  readonly database: string
  readonly table: string
  /** How many inserts and rows there have been since the start. */
  inserts(): Promise<{ inserts: number; rows: number }>
}

interface Measured {
  readonly spans: number
  readonly seconds: number
  readonly use: Readonly<Record<string, ProcessUse>>
  readonly load: LoadResult
  readonly rowsPerInsert: number
}

export const scenario: Scenario = {
  name: 'pipeline',
  question:
    'How many spans a second does the whole pipeline take from accepted to queryable, with one edge, one worker process, ' +
    'Redis and ClickHouse on this machine, and what does a million of them cost?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: true })
    const clickhouse = await startBenchClickHouse(context)
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const contenders = [await startProduct(context, redis, clickhouse), await startPeer(context, redis, clickhouse)]
    const rows: Row[] = []
    for (const spans of [200, 20]) rows.push(...(await measureSize(context, generator, clickhouse, contenders, spans)))
    return {
      rows,
      notes: [
        'Time runs from the first request until count() in ClickHouse equals what was accepted; a run in which it never does, or passes it, fails.',
        'Clients obey 429 and Retry-After. CPU includes the merges that the inserts caused.',
        'The peer gathers the rows of many jobs for 200 ms, as asynchronous inserts would do for it on a ClickHouse server.',
      ],
      facts: { Redis: redis.version, ClickHouse: clickhouse.version },
    }
  },
}

async function startProduct(
  context: ScenarioContext,
  redis: BenchRedis,
  clickhouse: BenchClickHouse,
): Promise<Contender> {
  const edge = await startEdge(context, redis, { QUEUE_MAX_BYTES: String(QUEUE_BYTES) })
  const workers = await startWorkers(context, redis, clickhouse, ['spans'])
  return {
    name: PRODUCT,
    port: edge.port,
    publicKey: edge.publicKey,
    pids: { edge: edge.pid, worker: workers.pid, Redis: redis.pid, ClickHouse: clickhouse.pid },
    database: BENCH_DATABASE,
    table: 'spans',
    inserts: async () => ({
      inserts: await readMetric(workers.adminUrl, 'penstock_batch_rows_count', 'queue="spans"'),
      rows: await readMetric(workers.adminUrl, 'penstock_batch_rows_sum', 'queue="spans"'),
    }),
  }
}

async function startPeer(context: ScenarioContext, redis: BenchRedis, clickhouse: BenchClickHouse): Promise<Contender> {
  await clickhouse.client.command({ query: `CREATE DATABASE ${PEER_DATABASE}` })
  await clickhouse.client.command({
    query: TRACES_TABLE.replace('otel_traces', `${PEER_DATABASE}.otel_traces`),
  })
  const start = async (script: string, env: Record<string, string>) => {
    const port = await freePort()
    const readyUrl = `http://127.0.0.1:${port}/readyz`
    const child = await startProcess(context, {
      script,
      env: { PORT: String(port), REDIS_URL: redis.url(2), ...env },
      readyUrl,
    })
    return { port, pid: child.pid }
  }
  const publicKey = 'pk_peer'
  // As many bytes as the product may queue, were every payload one of 200 spans.
  const edge = await start('bench/peers/queue-per-request.ts', { PUBLIC_KEY: publicKey, QUEUE_MAX_JOBS: '3000' })
  const worker = await start('bench/peers/queue-per-request-worker.ts', {
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_DATABASE: PEER_DATABASE,
  })
  return {
    name: PEER,
    port: edge.port,
    publicKey,
    pids: { edge: edge.pid, worker: worker.pid, Redis: redis.pid, ClickHouse: clickhouse.pid },
    database: PEER_DATABASE,
    table: 'otel_traces',
    inserts: () => writtenBlocks(clickhouse.client),
  }
}

async function measureSize(
  context: ScenarioContext,
  generator: LoadGenerator,
  clickhouse: BenchClickHouse,
  contenders: readonly Contender[],
  spans: number,
): Promise<Row[]> {
  const measured = new Map<string, Measured[]>(contenders.map(({ name }) => [name, []]))
  const rounds = context.quick ? 1 : 3
  // The first round warms up: it is measured like the others, shorter, and thrown away.
  for (let round = 0; round <= rounds; round++) {
    for (const contender of contenders) {
      const durationMs = round === 0 ? 1_500 : context.quick ? 2_000 : 8_000
      const result = await measureOnce(generator, clickhouse, contender, spans, durationMs)
      if (round > 0) measured.get(contender.name)?.push(result)
      const rate = Math.round(result.spans / result.seconds).toLocaleString('en')
      const what = round === 0 ? 'warm-up' : `round ${round}/${rounds}`
      context.progress(`${spans} spans a payload, ${what}: ${contender.name} ${rate} spans/s`)
    }
  }
  return [...measured].flatMap(([name, results]) => toRows(name, spans, results))
}

async function measureOnce(
  generator: LoadGenerator,
  { client }: BenchClickHouse,
  contender: Contender,
  spans: number,
  durationMs: number,
): Promise<Measured> {
  await truncateTables(client, contender.database)
  await settleMerges(client)
  const before = await contender.inserts()
  const meter = meterProcesses(contender.pids)
  meter.begin()
  const startedAt = performance.now()
  const load = await generator.run({
    port: contender.port,
    path: '/drain/v1/traces',
    headers: { 'x-service-public-key': contender.publicKey, 'content-type': 'application/x-protobuf' },
    connections: CONNECTIONS,
    payload: { spans, pool: 4 * CONNECTIONS, freshIds: true },
    mode: { kind: 'closed' },
    warmUpMs: 0,
    durationMs,
  })
  const { 200: ok = 0, 429: refused, ...others } = load.statuses
  if (Object.keys({ ...others, ...load.faults }).length > 0) {
    throw new Error(
      `${contender.name} answered other than 200 and 429: ${JSON.stringify({ ...others, ...load.faults })}`,
    )
  }
  const accepted = ok * spans
  const stored = async () => countRows(client, `${contender.database}.${contender.table}`)
  await pollUntil(
    `${accepted} spans of ${contender.name} are stored`,
    300_000,
    async () => (await stored()) >= accepted,
    50,
  )
  const seconds = (performance.now() - startedAt) / 1_000
  await settleMerges(client)
  const use = meter.end()
  const after = await contender.inserts()
  const found = await stored()
  if (found !== accepted) throw new Error(`${contender.name} stored ${found} spans of ${accepted}`)
  return {
    spans: accepted,
    seconds,
    use,
    load,
    rowsPerInsert: (after.rows - before.rows) / (after.inserts - before.inserts),
  }
}

async function countRows(client: BenchClickHouse['client'], table: string): Promise<number> {
  const result = await client.query({ query: `SELECT count() AS n FROM ${table}`, format: 'JSONEachRow' })
  const [row] = await result.json<{ n: number }>()
  return Number(row?.n)
}

function toRows(name: string, spans: number, results: readonly Measured[]): Row[] {
  const title = `${name}, ${spans} spans`
  const perMillion = (process: string) =>
    results.map(({ use, spans: stored }) => ((use[process]?.cpuSeconds ?? 0) / stored) * 1e6)
  const processes = Object.keys(results[0]?.use ?? {})
  const median = (of: (measured: Measured) => number) => summarize(results.map(of)).median
  const peak = (process: string) => results.map(({ use }) => use[process]?.peakMemoryBytes ?? 0)
  const isProduct = name === PRODUCT
  const goals = isProduct ? GOALS.get(spans) : undefined
  const throughput: Row = {
    name: title,
    unit: 'spans/s',
    samples: results.map(result => result.spans / result.seconds),
    ...(goals && { goal: goals.spansPerSecond }),
    ...(isProduct && { ratios: [{ to: `${PEER}, ${spans} spans`, ...(goals?.overPeer && { goal: goals.overPeer }) }] }),
    cpu: {
      per: 'million spans',
      seconds: Object.fromEntries([
        ...processes.map(process => [process, summarize(perMillion(process)).median]),
        ['load generator', median(({ load, spans: stored }) => (load.cpuSeconds / stored) * 1e6)],
      ]),
    },
    peakMemoryBytes: Object.fromEntries(processes.map(process => [process, Math.max(...peak(process))])),
    details: {
      'rows per insert': Math.round(median(result => result.rowsPerInsert)).toLocaleString('en'),
      refused: `${(median(({ load }) => ((load.statuses[429] ?? 0) / ((load.statuses[200] ?? 0) + (load.statuses[429] ?? 0))) * 100)).toFixed(1)} %`,
      body: `${Math.round(results[0]?.load.bodyBytes ?? 0).toLocaleString('en')} bytes`,
    },
  }
  if (!isProduct) return [throughput]
  const cost = (what: string, parts: readonly string[], atMost?: number): Row => ({
    name: `${what}, ${spans} spans`,
    unit: 'CPU s per million spans',
    samples: results.map((_result, round) => parts.reduce((sum, part) => sum + (perMillion(part)[round] ?? 0), 0)),
    ...(atMost !== undefined && { goal: { atMost } }),
  })
  const memory = (process: string, atMost: number): Row => ({
    name: `peak memory of the ${process}, ${spans} spans`,
    unit: 'MB',
    samples: peak(process).map(bytes => bytes / 1e6),
    goal: { atMost },
  })
  return [
    throughput,
    cost('ClickHouse', ['ClickHouse'], 2.5),
    cost('edge, worker and Redis', ['edge', 'worker', 'Redis'], 4),
    memory('edge', 200),
    memory('worker', 400),
  ]
}
