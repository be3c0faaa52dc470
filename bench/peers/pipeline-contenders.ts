import { freePort } from '../../deploy/local/ports.ts'
import { SIGNAL_QUEUES, type Signal } from '../../schemas/queues/names.ts'
import { sendRequests } from '../load/send-requests.ts'
import type { LoadGenerator } from '../load/start-generator.ts'
import { writtenBlocks } from '../measure/clickhouse-work.ts'
import type { PipelineContender } from '../measure/measure-pipeline.ts'
import { startProcess } from '../services/start-process.ts'
import { type BenchEdge, startWorkers } from '../services/start-product.ts'
import { BENCH_DATABASE, type BenchClickHouse, type BenchRedis } from '../services/start-stores.ts'
import { readMetric } from '../support/read-metric.ts'
import type { ScenarioRun } from '../support/scenario.ts'
import { TRACES_TABLE } from './trace-rows.ts'

/** Name of the product in reports. */
export const PRODUCT = 'product'
/** Name of the peer with a queue. */
export const QUEUE_PEER = 'Fastify, job per request, protobufjs, JSONEachRow'
/** Name of the peer without a queue. */
export const DIRECT_PEER = 'Fastify, protobufjs, asynchronous insert, no queue'

const CONNECTIONS = 64
/**
 * Connections of the peer without a queue, whose responses take as long as its inserts. With 64 it is idle in between
 * (45,000 spans/s), and 256 add nothing.
 */
const DIRECT_CONNECTIONS = 128

const PEER_PATH = '/drain/v1/traces'
const PEER_KEY = 'pk_peer'
/** Database of the peer. The product uses 0 and 1. */
const PEER_REDIS_DATABASE = 2

/** Stores and tools that the contenders share. */
export interface PipelineStage {
  readonly context: ScenarioRun
  readonly generator: LoadGenerator
  readonly redis: BenchRedis
  readonly clickhouse: BenchClickHouse
  /** Whether ClickHouse has a queue for asynchronous inserts. */
  readonly hasAsyncInserts: boolean
}

const TABLES: Record<Signal, string> = { traces: 'spans', logs: 'logs', metrics: 'metric_points' }

/** Starts the product with a worker process for this signal only, so that its cost is not mixed with another's. */
export async function startProduct(
  { context, generator, redis, clickhouse }: PipelineStage,
  edge: BenchEdge,
  signal: Signal,
): Promise<PipelineContender> {
  const queue = SIGNAL_QUEUES[signal]
  const workers = await startWorkers(context, redis, clickhouse, [queue])
  return {
    name: PRODUCT,
    pids: { edge: edge.pid, worker: workers.pid, Redis: redis.pid, ClickHouse: clickhouse.pid },
    database: BENCH_DATABASE,
    table: TABLES[signal],
    send: sendRequests(generator, {
      name: PRODUCT,
      port: edge.port,
      path: `/drain/v1/${signal}`,
      headers: { 'x-service-public-key': edge.publicKey },
      connections: CONNECTIONS,
    }),
    inserts: async () => ({
      inserts: await readMetric(workers.adminUrl, 'penstock_batch_rows_count', `queue="${queue}"`),
      rows: await readMetric(workers.adminUrl, 'penstock_batch_rows_sum', `queue="${queue}"`),
    }),
  }
}

/** Starts the peer with one BullMQ job per request. */
export async function startQueuePeer(stage: PipelineStage): Promise<PipelineContender> {
  const { generator, redis, clickhouse } = stage
  const database = await createPeerDatabase(clickhouse, 'peer_queue', TRACES_TABLE)
  const redisUrl = redis.url(PEER_REDIS_DATABASE)
  // Work for eight seconds in payloads of 200 spans, or 1.5 s in payloads of 20, so that the worker is never idle.
  const [edge, worker] = await Promise.all([
    startPeer(stage, 'queue-per-request', { REDIS_URL: redisUrl, QUEUE_MAX_JOBS: '1500' }),
    startPeer(stage, 'queue-per-request-worker', { REDIS_URL: redisUrl, CLICKHOUSE_DATABASE: database }),
  ])
  return {
    name: QUEUE_PEER,
    pids: { edge: edge.pid, worker: worker.pid, Redis: redis.pid, ClickHouse: clickhouse.pid },
    database,
    table: 'otel_traces',
    send: sendRequests(generator, { ...peerTarget(QUEUE_PEER, edge.port), connections: CONNECTIONS }),
    inserts: () => writtenBlocks(clickhouse.client),
  }
}

/** Starts the peer that inserts before it responds. */
export async function startDirectPeer(stage: PipelineStage): Promise<PipelineContender> {
  const { generator, clickhouse } = stage
  const database = await createPeerDatabase(clickhouse, 'peer_direct', TRACES_TABLE)
  const edge = await startPeer(stage, 'direct-insert', { CLICKHOUSE_DATABASE: database })
  return {
    name: DIRECT_PEER,
    pids: { edge: edge.pid, ClickHouse: clickhouse.pid },
    database,
    table: 'otel_traces',
    send: sendRequests(generator, { ...peerTarget(DIRECT_PEER, edge.port), connections: DIRECT_CONNECTIONS }),
    inserts: () => writtenBlocks(clickhouse.client),
  }
}

/** Creates a database for one peer, so that its rows are not merged while another peer is measured. */
async function createPeerDatabase({ client }: BenchClickHouse, name: string, table: string): Promise<string> {
  await client.command({ query: `CREATE DATABASE ${name}` })
  await client.command({ query: table.replace('CREATE TABLE ', `CREATE TABLE ${name}.`) })
  return name
}

const peerTarget = (name: string, port: number) => ({
  name,
  port,
  path: PEER_PATH,
  headers: { 'x-service-public-key': PEER_KEY },
})

async function startPeer(
  { context, clickhouse, hasAsyncInserts }: PipelineStage,
  script: string,
  env: Record<string, string>,
): Promise<{ port: number; pid: number }> {
  const port = await freePort()
  const child = await startProcess(context, {
    script: `bench/peers/${script}.ts`,
    env: {
      PORT: String(port),
      PUBLIC_KEY: PEER_KEY,
      CLICKHOUSE_URL: clickhouse.url,
      GATHER_IN: hasAsyncInserts ? 'server' : 'process',
      ...env,
    },
    readyUrl: `http://127.0.0.1:${port}/readyz`,
  })
  return { port, pid: child.pid }
}
