import { freePort } from '../deploy/local/ports.ts'
import type { LoadPlan, LoadResult } from './load/plan.ts'
import { type LoadGenerator, startGenerator } from './load/start-generator.ts'
import { meterProcesses, type ProcessUse } from './support/process-meter.ts'
import type { Ratio, Row, Scenario, ScenarioContext } from './support/scenario.ts'
import { startProcess } from './support/start-process.ts'
import { startEdge } from './support/start-product.ts'
import { type BenchRedis, startBenchRedis } from './support/start-stores.ts'
import { summarize } from './support/statistics.ts'

/** What is sent, and over how many connections. */
interface Load {
  readonly spans: number
  readonly connections: number
}

const LOADS: readonly Load[] = [
  { spans: 1, connections: 64 },
  { spans: 20, connections: 64 },
  { spans: 200, connections: 64 },
]
const QUICK_LOADS = LOADS.slice(0, 2)
/** Once, and not counted: the servers compile what they run. */
const WARM_UP: Load = { spans: 20, connections: 64 }

const EDGE = 'product edge'
const HTTP_SERVER = 'its HTTP server alone'
const EMPTY_ROUTE = 'uWS, empty route'
const PEER = 'Fastify, job per request'

/** At 64 connections, by spans in a payload: at least this share of the empty route, and this many times the peer (issue 4). */
const GOALS: ReadonlyMap<number, { emptyRoute?: number; peer?: number }> = new Map([
  [1, { emptyRoute: 0.35, peer: 2.5 }],
  [20, { peer: 4 }],
])

/** A server under load, and the processes whose work is counted as its own. */
interface Contender {
  readonly name: string
  readonly port: number
  readonly publicKey: string
  readonly pids: Readonly<Record<string, number>>
  /** What has come in goes out again, so that every round starts from nothing. */
  empty(): Promise<void>
}

interface Measured {
  readonly load: LoadResult
  readonly use: Readonly<Record<string, ProcessUse>>
}

export const scenario: Scenario = {
  name: 'ingest',
  question:
    'How many requests a second does one edge process acknowledge (each on disk in Redis, appendfsync always) over 64 ' +
    'connections, against the same HTTP library doing nothing, and against Fastify with one BullMQ job per request?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: false })
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const contenders = await startContenders(context, redis)
    context.progress('warming up')
    for (const contender of contenders) await measureOnce(context, generator, contender, WARM_UP)
    const rows: Row[] = []
    for (const load of context.quick ? QUICK_LOADS : LOADS) {
      rows.push(...(await measureLoad(context, generator, contenders, load)))
    }
    return { rows, notes: NOTES, facts: { Redis: redis.version } }
  },
}

const NOTES = [
  'One round measures every contender in turn; ratios are taken round by round, so noise of the machine hits both sides.',
  `The load generator is one process. "${EMPTY_ROUTE}" shows its ceiling: there, "server busy" below 100 % says that the generator, not the server, set the rate, and that the server could do more by that factor.`,
  'CPU of the edge process includes the kernel’s TCP work for it.',
]

async function startContenders(context: ScenarioContext, redis: BenchRedis): Promise<Contender[]> {
  // Workers are not running: nothing is to be refused while a round lasts.
  const unbounded = { QUEUE_MAX_PAYLOADS: '1000000000', QUEUE_MAX_BYTES: '1000000000000', REDIS_MAX_MEMORY_SHARE: '1' }
  const edge = await startEdge(context, redis, unbounded)
  const start = async (script: string, env: Record<string, string> = {}) => {
    const port = await freePort()
    const readyUrl = `http://127.0.0.1:${port}/readyz`
    const child = await startProcess(context, { script, env: { PORT: String(port), ...env }, readyUrl })
    return { port, publicKey: edge.publicKey, pids: { edge: child.pid } }
  }
  const peerDatabase = 2
  const peerEnv = { REDIS_URL: redis.url(peerDatabase), PUBLIC_KEY: edge.publicKey }
  const peer = await start('bench/peers/queue-per-request.ts', peerEnv)
  const nothingToEmpty = async () => {}
  return [
    {
      ...edge,
      name: EDGE,
      pids: { edge: edge.pid, redis: redis.pid },
      empty: () => redis.empty(edge.queueDatabase, ['*:meta']),
    },
    { ...(await start('bench/peers/empty-route.ts')), name: EMPTY_ROUTE, empty: nothingToEmpty },
    { ...(await start('bench/peers/http-server-route.ts')), name: HTTP_SERVER, empty: nothingToEmpty },
    {
      ...peer,
      name: PEER,
      pids: { ...peer.pids, redis: redis.pid },
      empty: () => redis.empty(peerDatabase, ['*:meta']),
    },
  ]
}

async function measureLoad(
  context: ScenarioContext,
  generator: LoadGenerator,
  contenders: readonly Contender[],
  load: Load,
): Promise<Row[]> {
  const measured = new Map<string, Measured[]>(contenders.map(({ name }) => [name, []]))
  const rounds = context.quick ? 3 : 5
  for (let round = 1; round <= rounds; round++) {
    for (const contender of contenders) {
      const result = await measureOnce(context, generator, contender, load)
      measured.get(contender.name)?.push(result)
      const rate = Math.round(result.load.ok / result.load.seconds).toLocaleString('en')
      context.progress(`${textOf(load)}, round ${round}/${rounds}: ${contender.name} ${rate} requests/s`)
    }
  }
  return [...measured].map(([name, results]) => toRow(name, load, results))
}

async function measureOnce(
  context: ScenarioContext,
  generator: LoadGenerator,
  contender: Contender,
  { spans, connections }: Load,
): Promise<Measured> {
  const plan: LoadPlan = {
    port: contender.port,
    path: '/drain/v1/traces',
    headers: { 'x-service-public-key': contender.publicKey, 'content-type': 'application/x-protobuf' },
    connections,
    payload: { spans, pool: connections, freshIds: false },
    mode: { kind: 'closed' },
    warmUpMs: context.quick ? 400 : 800,
    durationMs: context.quick ? 1_000 : 2_000,
  }
  const meter = meterProcesses(contender.pids)
  let use: Record<string, ProcessUse> = {}
  const load = await generator.run(plan, edge => {
    if (edge === 'begin') meter.begin()
    else use = meter.end()
  })
  await contender.empty()
  const others = Object.keys(load.statuses).filter(status => status !== '200')
  if (others.length > 0 || Object.keys(load.faults).length > 0) {
    const what = JSON.stringify({ ...load.statuses, ...load.faults })
    throw new Error(`${contender.name} did not answer 200 to everything: ${what}`)
  }
  return { load, use }
}

function toRow(name: string, load: Load, results: readonly Measured[]): Row {
  const median = (of: (measured: Measured) => number) => summarize(results.map(of)).median
  const perMillion = (process: string) => (of: Measured) => ((of.use[process]?.cpuSeconds ?? 0) / of.load.ok) * 1e6
  const processes = Object.keys(results[0]?.use ?? {})
  const underLoad = (other: string) => `${other}, ${textOf(load)}`
  const goals = load.connections === 64 ? GOALS.get(load.spans) : undefined
  const ratios: Ratio[] =
    name !== EDGE
      ? []
      : [
          { to: underLoad(EMPTY_ROUTE), ...(goals?.emptyRoute && { goal: { atLeast: goals.emptyRoute } }) },
          { to: underLoad(PEER), ...(goals?.peer && { goal: { atLeast: goals.peer } }) },
        ]
  return {
    name: underLoad(name),
    unit: 'requests/s',
    samples: results.map(({ load }) => load.ok / load.seconds),
    ratios,
    cpu: {
      per: 'million requests',
      seconds: Object.fromEntries([
        ...processes.map(process => [process, median(perMillion(process))]),
        ['load generator', median(({ load: { cpuSeconds, ok } }) => (cpuSeconds / ok) * 1e6)],
      ]),
    },
    peakMemoryBytes: Object.fromEntries(
      processes.map(process => [process, Math.max(...results.map(({ use }) => use[process]?.peakMemoryBytes ?? 0))]),
    ),
    details: {
      'server busy': `${Math.round(median(({ use, load }) => (use.edge?.cpuSeconds ?? 0) / load.seconds) * 100)} %`,
      'generator busy': `${Math.round(median(({ load: { cpuSeconds, seconds } }) => cpuSeconds / seconds) * 100)} %`,
      'p50 / p99': `${median(({ load }) => load.latency.p50Ms).toFixed(1)} / ${median(({ load }) => load.latency.p99Ms).toFixed(1)} ms`,
      body: `${Math.round(results[0]?.load.bodyBytes ?? 0).toLocaleString('en')} bytes`,
    },
  }
}

const textOf = ({ spans, connections }: Load) =>
  `${spans} ${spans === 1 ? 'span' : 'spans'}, ${connections} connections`
