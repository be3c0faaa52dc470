import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { GrpcLoad, GrpcPlan } from '../load/grpc-load.ts'
import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import { type IngestContender, measureRequests, runAndEmpty } from '../measure/measure-ingest.ts'
import { meterProcesses } from '../measure/process-meter.ts'
import { type BenchEdge, QUEUES_UNBOUNDED, startEdge } from '../services/start-product.ts'
import { type BenchRedis, startBenchRedis } from '../services/start-stores.ts'
import { measureRounds, samplesOf } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioRun } from '../support/scenario.ts'

/** Calls in flight: as many as connections of HTTP. */
const CALLS = { connections: 8, streams: 8 }
const IN_FLIGHT = CALLS.connections * CALLS.streams
const EXPORT = '/opentelemetry.proto.collector.trace.v1.TraceService/Export'
/** Calls that are refused by their head: what the machine and the sender take from others, whatever the edge does. */
const UNKNOWN = '/opentelemetry.proto.collector.trace.v1.TraceService/Unknown'
const NOTHING = 'p99 of others over HTTP, flood of an unknown method in its own process'

/** Measures OTLP/gRPC beside OTLP/HTTP, and what a flood of calls costs the clients of HTTP. */
export const scenario: Scenario = {
  name: 'grpc',
  question:
    'What does an export of one span cost the edge over gRPC and over HTTP, and what do clients of HTTP notice of a flood ' +
    'of calls to the same edge, or to a process of its own?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: false })
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const edge = await startEdge(context, redis, QUEUES_UNBOUNDED)
    const own = await startEdge(context, redis, QUEUES_UNBOUNDED, ['--listen', 'grpc'])
    const bench: Bench = { context, redis, generator, edge, own }
    const [rounds, durationMs] = context.quick ? [2, 1_500] : [5, 4_000]
    const costs = await measureRounds(context, {
      what: `${IN_FLIGHT} requests in flight`,
      rounds,
      contenders: [
        { name: 'HTTP', measure: () => costOverHttp(bench, durationMs) },
        { name: 'gRPC', measure: () => costOverGrpc(bench, durationMs) },
      ],
      describe: us => `${us.toFixed(1)} µs a request`,
    })
    const latencies = await measureRounds(context, {
      what: 'others over HTTP',
      rounds,
      contenders: [
        { name: 'p99 of others over HTTP, alone', measure: () => p99OfOthers(bench, durationMs) },
        { name: NOTHING, measure: () => besideCalls(bench, own, durationMs, UNKNOWN) },
        {
          name: 'p99 of others over HTTP, gRPC flood in the edge',
          measure: () => besideCalls(bench, edge, durationMs),
        },
        {
          name: 'p99 of others over HTTP, gRPC flood in its own process',
          measure: () => besideCalls(bench, own, durationMs),
        },
      ],
      describe: ms => `${ms.toFixed(1)} ms`,
    })
    const rows: Row[] = [...costs].map(([name, results]) => ({
      name: `edge, 1 span over ${name}`,
      unit: 'µs CPU a request',
      samples: samplesOf(results, us => us),
      ...(name === 'gRPC' && { ratios: [{ to: 'edge, 1 span over HTTP' }] }),
    }))
    for (const [name, results] of latencies) {
      const ratios = name.includes('gRPC flood') ? { ratios: [{ to: NOTHING }] } : {}
      rows.push({ name, unit: 'ms, p99', samples: samplesOf(results, ms => ms), ...ratios })
    }
    return {
      rows,
      method: `${rounds} rounds of ${durationMs / 1_000} s`,
      notes: NOTES,
      facts: { Redis: redis.version },
    }
  },
}

const NOTES = [
  `A flood is a closed loop of ${IN_FLIGHT} calls over ${CALLS.connections} connections. The others send 200 requests of one span a second over 20 connections of HTTP, each due at a fixed time, from which its latency counts.`,
  'The sender of the calls takes more CPU than the edge: on two cores, others wait for it as well. The flood of an unknown method, which is refused by the head of each call, shows how long.',
]

interface Bench {
  readonly context: ScenarioRun
  readonly redis: BenchRedis
  readonly generator: LoadGenerator
  readonly edge: BenchEdge
  /** The edge of gRPC alone. */
  readonly own: BenchEdge
}

const contenderOf = ({ redis, edge }: Bench): IngestContender => ({
  ...{ name: 'edge', port: edge.port, publicKey: edge.publicKey, pids: { edge: edge.pid } },
  empty: () => redis.empty(edge.queueDatabase, ['*:meta', '*:mark']),
})

async function costOverHttp(bench: Bench, durationMs: number): Promise<number> {
  const load = { spans: 1, connections: IN_FLIGHT, warmUpMs: 400, durationMs }
  const { ok, use } = await measureRequests(bench.generator, contenderOf(bench), load)
  return microseconds(use.edge?.cpuSeconds, ok)
}

async function costOverGrpc(bench: Bench, durationMs: number): Promise<number> {
  const meter = meterProcesses({ edge: bench.edge.pid })
  meter.begin()
  const ok = await flood(bench, bench.edge, durationMs)
  return microseconds(meter.end().edge?.cpuSeconds, ok)
}

const microseconds = (cpuSeconds = Number.NaN, requests: number) => (1e6 * cpuSeconds) / requests

async function p99OfOthers(bench: Bench, durationMs: number): Promise<number> {
  const contender = contenderOf(bench)
  const load = await runAndEmpty(bench.generator, contender, {
    ...{ port: contender.port, path: '/v1/traces', connections: 20, warmUpMs: 500, durationMs },
    headers: { 'x-service-public-key': contender.publicKey, 'content-type': 'application/x-protobuf' },
    payload: { spans: 1, pool: 64, freshIds: false },
    mode: { kind: 'open', requestsPerSecond: 200 },
  })
  return load.latency.p99Ms
}

async function besideCalls(bench: Bench, edge: BenchEdge, durationMs: number, path = EXPORT): Promise<number> {
  const [p99Ms] = await Promise.all([p99OfOthers(bench, durationMs), flood(bench, edge, durationMs + 500, path)])
  return p99Ms
}

/** Sends calls from a process of its own, and returns their number. Throws if one did not end as it must. */
async function flood({ redis }: Bench, edge: BenchEdge, durationMs: number, path = EXPORT): Promise<number> {
  const sender = fork(fileURLToPath(new URL('../load/grpc-load.ts', import.meta.url)))
  try {
    const { grpcPort: port, publicKey } = edge
    sender.send({ port, path, publicKey, ...CALLS, durationMs } satisfies GrpcPlan)
    const [load] = (await once(sender, 'message', { signal: AbortSignal.timeout(durationMs + 10_000) })) as [GrpcLoad]
    const { [path === EXPORT ? '0' : '12']: ended = 0, ...others } = load
    if (Object.keys(others).length > 0) throw new Error(`calls failed: ${JSON.stringify(others)}`)
    return ended
  } finally {
    sender.kill()
    await redis.empty(edge.queueDatabase, ['*:meta', '*:mark'])
  }
}
