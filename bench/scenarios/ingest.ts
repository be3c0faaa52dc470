import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import {
  type IngestContender,
  type IngestLoad,
  type IngestMeasured,
  measureRequests,
} from '../measure/measure-ingest.ts'
import { measureOpenLoop, OPEN_CONNECTIONS } from '../measure/measure-open-loop.ts'
import { EDGE, EMPTY_ROUTE, startIngestContenders } from '../peers/ingest-contenders.ts'
import {
  ingestLatencyRow,
  ingestRow,
  loadText,
  openLoopRows,
  requestCostRow,
  underLoad,
} from '../report/ingest-rows.ts'
import { startBenchRedis } from '../services/start-stores.ts'
import { measureRounds, type Results, rowsOf } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioRun } from '../support/scenario.ts'

/** Number of connections for the comparison of all contenders. */
const MAIN_CONNECTIONS = 64
const OTHER_CONNECTIONS = [16, 512]

/** Measures the edge alone. */
export const scenario: Scenario = {
  name: 'ingest',
  question:
    'How many requests a second does one edge process acknowledge (each on disk in Redis, appendfsync always), by size ' +
    'of payload and number of connections, against the same HTTP library doing nothing?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: false })
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const contenders = await startIngestContenders(context, redis)
    context.progress('warming up')
    // Once, not counted: the servers compile their code.
    const warmUp = { spans: 20, connections: MAIN_CONNECTIONS, warmUpMs: 200, durationMs: context.quick ? 800 : 2_000 }
    for (const contender of contenders) await measureRequests(generator, contender, warmUp)
    const bench: Bench = { context, generator, contenders }
    const rows: Row[] = []
    for (const connections of context.quick ? [MAIN_CONNECTIONS] : [MAIN_CONNECTIONS, ...OTHER_CONNECTIONS]) {
      for (const spans of [1, 20]) rows.push(...(await compareAll(bench, spans, connections)))
    }
    rows.push(...(await measureOpenLoops(bench)))
    const method = `every server warmed up for ${(warmUp.warmUpMs + warmUp.durationMs) / 1_000} s; ${roundsOf(context)} rounds of 1.3 s a contender, 0.4 s before each not counted`
    return { rows, method, notes: NOTES, facts: { Redis: redis.version } }
  },
}

const NOTES = [
  'Each round measures every contender in turn and begins with the next one. Ratios are taken within a round, so that noise of the machine affects both sides. Before each, the log of Redis is new and the disk is quiet. Where the file system is mounted with `discard`, deleting the old log stops every fsync for longer than the edge waits, and one round in ten had responses 503.',
  `In the open loop, ${OPEN_CONNECTIONS.toLocaleString('en')} connections carry 45 % of the requests that the empty route answers in the same round, each due at a fixed time, and latency counts from that time.`,
  `The load generator is one process. "${EMPTY_ROUTE}" shows its limit: if "server busy" is below 100 % there, the generator limited the rate, and the server could do more by that factor. If "generator busy" is well below 100 %, the generator waited for responses. If both are, the disk or something else on the machine limited the rate.`,
  'CPU time of the edge includes the kernel’s TCP work for it.',
]

interface Bench {
  readonly context: ScenarioRun
  readonly generator: LoadGenerator
  readonly contenders: readonly IngestContender[]
}

/** Compares the edge with the empty route. */
async function compareAll({ context, generator, contenders }: Bench, spans: number, connections: number) {
  const load: IngestLoad = { spans, connections, warmUpMs: 400, durationMs: context.quick ? 800 : 1_300 }
  const measured = await measureRounds(context, {
    what: loadText(load),
    rounds: roundsOf(context),
    contenders: contenders.map(contender => ({
      name: contender.name,
      measure: () => measureRequests(generator, contender, load),
    })),
    describe: ({ ok, seconds }) => `${Math.round(ok / seconds).toLocaleString('en')} requests/s`,
  })
  return toRows(load, measured)
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

function toRows(load: IngestLoad, measured: ReadonlyMap<string, Results<IngestMeasured>>): Row[] {
  return [...measured].flatMap(([name, results]) =>
    rowsOf(results, () => [
      ingestRow(name, load, results, name === EDGE ? [{ to: underLoad(EMPTY_ROUTE, load) }] : []),
      ...(name === EDGE ? [ingestLatencyRow(name, load, results), requestCostRow(load, results)] : []),
    ]),
  )
}
