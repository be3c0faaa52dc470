import { buildBodies } from '../load/requests.ts'
import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import {
  type IngestContender,
  type IngestLoad,
  type IngestMeasured,
  measureRequests,
  measureSets,
} from '../measure/measure-ingest.ts'
import { EDGE, EMPTY_ROUTE, PEER, startIngestContenders } from '../peers/ingest-contenders.ts'
import type { SetWay } from '../peers/redis-set.ts'
import { ingestRow, ingestSpansRow, loadText, underLoad } from '../report/ingest-rows.ts'
import { type BenchRedis, startBenchRedis } from '../services/start-stores.ts'
import type { Ratio, Row, Scenario, ScenarioContext } from '../support/scenario.ts'

/** Number of connections for the goals and for the comparison of all contenders. */
const MAIN_CONNECTIONS = 64
const OTHER_CONNECTIONS = [16, 512]

/** Goals by spans in a payload: share of the empty route, and multiple of the peer. */
const GOALS: ReadonlyMap<number, { emptyRoute?: number; peer?: number }> = new Map([
  [1, { emptyRoute: 0.35, peer: 2.5 }],
  [20, { peer: 4 }],
])

const SET_PER_PAYLOAD = 'Redis alone, a SET per payload'
const SETS_OF_A_COMMIT = 'Redis alone, the SETs of a commit in one write'
const SET_PER_COMMIT = 'Redis alone, one SET per commit'

/** A database of the bench's Redis that no contender uses. */
const SET_DATABASE = 3

/** Measures the edge alone. */
export const scenario: Scenario = {
  name: 'ingest',
  question:
    'How many requests a second does one edge process acknowledge (each on disk in Redis, appendfsync always), by size ' +
    'of payload and number of connections, against the same HTTP library doing nothing, against Redis alone storing ' +
    'the same bytes, and against Fastify with one BullMQ job per request?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: false })
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const bench = { context, redis, generator, contenders: await startIngestContenders(context, redis) }
    context.progress('warming up')
    // Once, not counted: the servers compile their code.
    const warmUp = { spans: 20, connections: MAIN_CONNECTIONS, warmUpMs: 200, durationMs: context.quick ? 800 : 2_000 }
    for (const contender of bench.contenders) await measureRequests(generator, contender, warmUp)
    const rows: Row[] = []
    for (const spans of context.quick ? [1, 20] : [1, 20, 200]) rows.push(...(await compareAll(bench, spans)))
    for (const connections of context.quick ? [] : OTHER_CONNECTIONS) {
      for (const spans of [1, 20]) rows.push(...(await compareConnections(bench, spans, connections)))
    }
    const method = `every server warmed up for ${(warmUp.warmUpMs + warmUp.durationMs) / 1_000} s; ${roundsOf(context)} rounds of 0.7 to 1.3 s a contender, 0.2 to 0.4 s before each not counted`
    return { rows, method, notes: NOTES, facts: { Redis: redis.version } }
  },
}

const NOTES = [
  'Each round measures every contender in turn. Ratios are taken within a round, so that noise of the machine affects both sides.',
  `The load generator is one process. "${EMPTY_ROUTE}" shows its limit: if "server busy" is below 100 % there, the generator limited the rate, and the server could do more by that factor. If "generator busy" is well below 100 %, the generator waited for responses. If both are, the disk or something else on the machine limited the rate.`,
  'CPU time of the edge includes the kernel’s TCP work for it.',
  '"Redis alone" is the same Redis with the same fsync, written by one process over plain sockets. A commit is as large as those of the edge in the same round. One SET per commit is what the edge sends, without its job and counters. Redis reads many SETs of one write in several pieces, and syncs after each piece.',
]

interface Bench {
  readonly context: ScenarioContext
  readonly redis: BenchRedis
  readonly generator: LoadGenerator
  readonly contenders: readonly IngestContender[]
}

/** Compares every contender and Redis alone, with the connections of the goals. */
async function compareAll(bench: Bench, spans: number): Promise<Row[]> {
  const { context, generator, contenders } = bench
  const load: IngestLoad = {
    spans,
    connections: MAIN_CONNECTIONS,
    warmUpMs: 400,
    durationMs: context.quick ? 800 : 1_300,
  }
  const bodies = buildBodies({ spans, pool: MAIN_CONNECTIONS, freshIds: false })
  const measured = await measureRounds(context, load, async record => {
    let payloadsPerCommit = 1
    for (const contender of contenders) {
      const result = record(contender.name, await measureRequests(generator, contender, load))
      payloadsPerCommit = Math.round(result.payloadsPerCommit ?? payloadsPerCommit)
    }
    await measureRedis(bench.redis, load, bodies, payloadsPerCommit, record)
  })
  const goals = GOALS.get(spans)
  const ratios: Ratio[] = [
    { to: underLoad(EMPTY_ROUTE, load), ...(goals?.emptyRoute && { goal: { atLeast: goals.emptyRoute } }) },
    { to: underLoad(PEER, load), ...(goals?.peer && { goal: { atLeast: goals.peer } }) },
    { to: underLoad(SET_PER_COMMIT, load) },
  ]
  const rows = toRows(load, measured, ratios)
  return [...rows, ingestSpansRow(EDGE, load, measured.get(EDGE) ?? [])]
}

/** Compares the edge with the empty route, over fewer and over more connections. */
async function compareConnections(bench: Bench, spans: number, connections: number): Promise<Row[]> {
  const load: IngestLoad = { spans, connections, warmUpMs: 400, durationMs: 1_000 }
  const contenders = bench.contenders.filter(({ name }) => name === EDGE || name === EMPTY_ROUTE)
  const measured = await measureRounds(bench.context, load, async record => {
    for (const contender of contenders) {
      record(contender.name, await measureRequests(bench.generator, contender, load))
    }
  })
  return toRows(load, measured, [{ to: underLoad(EMPTY_ROUTE, load) }])
}

/** Measures Redis alone with the same bytes. `payloads` is the size of a commit of the edge in the same round. */
async function measureRedis(
  redis: BenchRedis,
  load: IngestLoad,
  bodies: readonly Buffer[],
  payloads: number,
  record: RecordResult,
): Promise<void> {
  const ways: readonly (readonly [string, SetWay])[] = [
    [SET_PER_PAYLOAD, { connections: load.connections, payloadsPerWrite: 1, joined: false }],
    [SETS_OF_A_COMMIT, { connections: 1, payloadsPerWrite: payloads, joined: false }],
    [SET_PER_COMMIT, { connections: 1, payloadsPerWrite: payloads, joined: true }],
  ]
  const target = { pid: redis.pid, url: redis.url(SET_DATABASE) }
  for (const [name, way] of ways) {
    record(name, await measureSets(target, bodies, way, { ...load, warmUpMs: 200, durationMs: 700 }))
    await redis.empty(SET_DATABASE)
  }
}

type RecordResult = (name: string, result: IngestMeasured) => IngestMeasured
type Results = ReadonlyMap<string, readonly IngestMeasured[]>

const roundsOf = ({ quick }: ScenarioContext) => (quick ? 2 : 3)

async function measureRounds(
  context: ScenarioContext,
  load: IngestLoad,
  measureAll: (record: RecordResult) => Promise<void>,
): Promise<Results> {
  const measured = new Map<string, IngestMeasured[]>()
  const rounds = roundsOf(context)
  for (let round = 1; round <= rounds; round++) {
    await measureAll((name, result) => {
      measured.set(name, [...(measured.get(name) ?? []), result])
      const rate = Math.round(result.ok / result.seconds).toLocaleString('en')
      context.progress(`${loadText(load)}, round ${round}/${rounds}: ${name} ${rate} requests/s`)
      return result
    })
  }
  return measured
}

const toRows = (load: IngestLoad, measured: Results, ratiosOfEdge: readonly Ratio[]): Row[] =>
  [...measured].map(([name, results]) => ingestRow(name, load, results, name === EDGE ? ratiosOfEdge : []))
