import { buildBodies } from '../load/requests.ts'
import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import {
  type IngestContender,
  type IngestLoad,
  type IngestMeasured,
  measureRequests,
  measureSets,
} from '../measure/measure-ingest.ts'
import { measureOpenLoop, OPEN_CONNECTIONS } from '../measure/measure-open-loop.ts'
import { EDGE, EMPTY_ROUTE, startIngestContenders } from '../peers/ingest-contenders.ts'
import type { SetWay } from '../peers/redis-set.ts'
import {
  ingestLatencyRow,
  ingestRow,
  ingestSpansRow,
  loadText,
  openLoopRows,
  requestCostRow,
  underLoad,
} from '../report/ingest-rows.ts'
import { type BenchRedis, startBenchRedis } from '../services/start-stores.ts'
import { measureRounds, type Results, type RoundContender, rowsOf } from '../support/rounds.ts'
import type { Ratio, Row, Scenario, ScenarioRun } from '../support/scenario.ts'

/** Number of connections for the comparison of all contenders. */
const MAIN_CONNECTIONS = 64
const OTHER_CONNECTIONS = [16, 512]

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
    'of payload and number of connections, against the same HTTP library doing nothing, and against Redis alone ' +
    'storing the same bytes?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: false })
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const contenders = await startIngestContenders(context, redis)
    context.progress('warming up')
    // Once, not counted: the servers compile their code.
    const warmUp = { spans: 20, connections: MAIN_CONNECTIONS, warmUpMs: 200, durationMs: context.quick ? 800 : 2_000 }
    for (const contender of contenders) await measureRequests(generator, contender, warmUp)
    const bench: Bench = { context, redis, generator, contenders }
    const rows: Row[] = []
    for (const spans of context.quick ? [1, 20] : [1, 20, 200]) rows.push(...(await compareAll(bench, spans)))
    for (const connections of context.quick ? [] : OTHER_CONNECTIONS) {
      for (const spans of [1, 20]) rows.push(...(await compareConnections(bench, spans, connections)))
    }
    rows.push(...(await measureOpenLoops(bench)))
    const method = `every server warmed up for ${(warmUp.warmUpMs + warmUp.durationMs) / 1_000} s; ${roundsOf(context)} rounds of 0.7 to 1.3 s a contender, 0.2 to 0.4 s before each not counted`
    return { rows, method, notes: NOTES, facts: { Redis: redis.version } }
  },
}

const NOTES = [
  'Each round measures every contender in turn and begins with the next one. Ratios are taken within a round, so that noise of the machine affects both sides. Before each, the log of Redis is new and the disk is quiet. Where the file system is mounted with `discard`, deleting the old log stops every fsync for longer than the edge waits, and one round in ten had responses 503.',
  `In the open loop, ${OPEN_CONNECTIONS.toLocaleString('en')} connections carry 45 % of the requests that the empty route answers in the same round, each due at a fixed time, and latency counts from that time.`,
  `The load generator is one process. "${EMPTY_ROUTE}" shows its limit: if "server busy" is below 100 % there, the generator limited the rate, and the server could do more by that factor. If "generator busy" is well below 100 %, the generator waited for responses. If both are, the disk or something else on the machine limited the rate.`,
  'CPU time of the edge includes the kernel’s TCP work for it.',
  '"Redis alone" is the same Redis with the same fsync, written by one process over plain sockets. A commit is as large as the latest ones of the edge. One SET per commit is what the edge sends, without its job and counters. Redis reads many SETs of one write in several pieces, and syncs after each piece.',
]

interface Bench {
  readonly context: ScenarioRun
  readonly redis: BenchRedis
  readonly generator: LoadGenerator
  readonly contenders: readonly IngestContender[]
}

/** Compares every contender and Redis alone, with the main number of connections. */
async function compareAll(bench: Bench, spans: number): Promise<Row[]> {
  const { context, generator, contenders } = bench
  const load: IngestLoad = {
    spans,
    connections: MAIN_CONNECTIONS,
    warmUpMs: 400,
    durationMs: context.quick ? 800 : 1_300,
  }
  const bodies = buildBodies({ spans, pool: MAIN_CONNECTIONS, freshIds: false })
  // The size of the edge's latest commits. The first round begins with the edge.
  let payloadsPerCommit = 1
  const servers = contenders.map(contender => ({
    name: contender.name,
    async measure() {
      const result = await measureRequests(generator, contender, load)
      payloadsPerCommit = Math.round(result.payloadsPerCommit ?? payloadsPerCommit)
      return result
    },
  }))
  const measured = await compare(bench, load, [
    ...servers,
    ...redisContenders(bench.redis, load, bodies, () => payloadsPerCommit),
  ])
  const ratios = [EMPTY_ROUTE, SET_PER_COMMIT].map(name => ({ to: underLoad(name, load) }))
  const edge = measured.get(EDGE) ?? []
  return [...toRows(load, measured, ratios), ...rowsOf(edge, () => [ingestSpansRow(EDGE, load, edge)])]
}

/** Compares the edge with the empty route, over fewer and over more connections. */
async function compareConnections(bench: Bench, spans: number, connections: number): Promise<Row[]> {
  const load: IngestLoad = { spans, connections, warmUpMs: 400, durationMs: 1_000 }
  const contenders = bench.contenders
    .filter(({ name }) => name === EDGE || name === EMPTY_ROUTE)
    .map(contender => ({
      name: contender.name,
      measure: () => measureRequests(bench.generator, contender, load),
    }))
  return toRows(load, await compare(bench, load, contenders), [{ to: underLoad(EMPTY_ROUTE, load) }])
}

/** Measures Redis alone with the same bytes. `payloads` returns the size of a commit of the edge. */
function redisContenders(
  redis: BenchRedis,
  load: IngestLoad,
  bodies: readonly Buffer[],
  payloads: () => number,
): RoundContender<IngestMeasured>[] {
  const target = { pid: redis.pid, url: redis.url(SET_DATABASE) }
  const { connections } = load
  const ways: readonly (readonly [string, () => SetWay])[] = [
    [SET_PER_PAYLOAD, () => ({ connections, payloadsPerWrite: 1, joined: false })],
    [SETS_OF_A_COMMIT, () => ({ connections: 1, payloadsPerWrite: payloads(), joined: false })],
    [SET_PER_COMMIT, () => ({ connections: 1, payloadsPerWrite: payloads(), joined: true })],
  ]
  return ways.map(([name, way]) => ({
    name,
    async measure() {
      const result = await measureSets(target, bodies, way(), { ...load, warmUpMs: 200, durationMs: 700 })
      await redis.empty(SET_DATABASE)
      return result
    },
  }))
}

/** Measures many connections at a fixed rate, and one client alone. */
async function measureOpenLoops({ context, generator, contenders }: Bench): Promise<Row[]> {
  const byName = (name: string) => contenders.find(contender => contender.name === name) as IngestContender
  const deps = { generator, edge: byName(EDGE), emptyRoute: byName(EMPTY_ROUTE), dir: context.dir }
  const name = 'open loop'
  const measured = await measureRounds(context, {
    what: `${OPEN_CONNECTIONS} connections`,
    rounds: roundsOf(context),
    contenders: [{ name, measure: () => measureOpenLoop(deps, context.quick ? 1_000 : 3_000) }],
    describe: ({ edgePerSecond }) => `${Math.round(edgePerSecond).toLocaleString('en')} requests/s`,
  })
  return openLoopRows(measured.get(name) ?? [])
}

const roundsOf = ({ quick }: ScenarioRun) => (quick ? 2 : 3)

function compare({ context }: Bench, load: IngestLoad, contenders: readonly RoundContender<IngestMeasured>[]) {
  return measureRounds(context, {
    what: loadText(load),
    rounds: roundsOf(context),
    contenders,
    describe: ({ ok, seconds }) => `${Math.round(ok / seconds).toLocaleString('en')} requests/s`,
  })
}

function toRows(
  load: IngestLoad,
  measured: ReadonlyMap<string, Results<IngestMeasured>>,
  ratiosOfEdge: readonly Ratio[],
): Row[] {
  return [...measured].flatMap(([name, results]) =>
    rowsOf(results, () => [
      ingestRow(name, load, results, name === EDGE ? ratiosOfEdge : []),
      ...(name === EDGE ? [ingestLatencyRow(name, load, results), requestCostRow(load, results)] : []),
    ]),
  )
}
