import { Redis } from 'ioredis'
import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import type { IngestLoad, IngestMeasured } from '../measure/measure-ingest.ts'
import { meterProcesses, type ProcessUse } from '../measure/process-meter.ts'
import { ingestRow, loadText } from '../report/ingest-rows.ts'
import { summarize } from '../report/statistics.ts'
import { type BenchEdge, issueSurfaces, QUEUES_UNBOUNDED, startEdge } from '../services/start-product.ts'
import { type BenchRedis, startBenchRedis } from '../services/start-stores.ts'
import { measureRounds, type Results, rowsOf, succeeded } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioResult, ScenarioRun } from '../support/scenario.ts'

/** Number of public keys that requests carry in turn, and the duration of a round. */
interface Rotation {
  readonly keys: number
  readonly durationMs: number
}

interface Size {
  readonly rounds: number
  /** Rotations. The first is the baseline of the others. */
  readonly rotations: readonly Rotation[]
}

const FULL: Size = {
  rounds: 2,
  rotations: [
    { keys: 1, durationMs: 1_500 },
    { keys: 10_000, durationMs: 1_500 },
    { keys: 100_000, durationMs: 5_000 },
  ],
}
const QUICK: Size = {
  rounds: 1,
  rotations: [
    { keys: 1, durationMs: 800 },
    { keys: 1_000, durationMs: 800 },
    { keys: 20_000, durationMs: 1_500 },
  ],
}

const LOAD = { spans: 1, connections: 64, warmUpMs: 400 }
const KEYS_PER_WORKSPACE = 10

/** Measures the cost of authentication at the edge. */
export const scenario: Scenario = {
  name: 'auth',
  question:
    'What does authentication cost the edge per request, with the key of one surface and with the keys of 100,000 in turn?',
  run: context => run(context, context.quick ? QUICK : FULL),
}

interface Bench {
  readonly redis: BenchRedis
  readonly edge: BenchEdge
  readonly generator: LoadGenerator
  readonly publicKeys: readonly string[]
}

interface AuthMeasured extends IngestMeasured {
  readonly lookupsPerRequest: number
}

async function run(context: ScenarioRun, { rounds, rotations }: Size): Promise<ScenarioResult> {
  const redis = await startBenchRedis(context, { ownRewrites: false })
  const edge = await startEdge(context, redis, QUEUES_UNBOUNDED)
  const generator = await startGenerator()
  context.onEnd(() => generator.stop())
  const keyCount = Math.max(...rotations.map(({ keys }) => keys))
  const surfaces = await issueSurfaces(redis, keyCount, KEYS_PER_WORKSPACE)
  context.progress(`${keyCount.toLocaleString('en')} keys created`)
  const bench = { redis, edge, generator, publicKeys: surfaces.map(({ publicKey }) => publicKey) }

  // Not counted: the edge compiles its code.
  await measure(bench, { keys: 1, durationMs: 1_000 })
  const results = await measureRounds(context, {
    what: 'keys in turn',
    rounds,
    contenders: rotations.map(rotation => ({ name: nameOf(rotation), measure: () => measure(bench, rotation) })),
    describe: ({ ok, seconds }) => `${Math.round(ok / seconds).toLocaleString('en')} requests/s`,
  })
  return {
    rows: rotations.flatMap(rotation => {
      const measured = results.get(nameOf(rotation)) ?? []
      return rowsOf(measured, () => [toRow(rotation, measured, rotations[0])])
    }),
    method: `1 s to warm up, ${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${rotations.map(({ durationMs }) => durationMs / 1_000).join(', ')} s, ${LOAD.warmUpMs / 1_000} s before each not counted`,
    notes: NOTES,
    facts: { Redis: redis.version },
  }
}

const NOTES = [
  'The requests differ only in their keys. The edge caches a key for 10 s after it was looked up. Few keys are always cached. With many keys, each returns only after it has expired, so every request looks up a key.',
  'A lookup is a separate GET. Redis processes it in order with the writes of the group commits, so it waits for their fsync.',
]

const nameOf = ({ keys }: Rotation) => (keys === 1 ? '1 key' : `${keys.toLocaleString('en')} keys`)

/** Measures one window of requests. Throws if any response is not 200. */
async function measure(bench: Bench, { keys, durationMs }: Rotation): Promise<AuthMeasured> {
  const { edge, redis, generator, publicKeys } = bench
  const meter = meterProcesses({ edge: edge.pid, redis: redis.pid })
  let use: Record<string, ProcessUse> = {}
  const lookupsBefore = await countLookups(redis)
  const load = await generator.run(
    {
      port: edge.port,
      path: '/drain/v1/traces',
      headers: { 'content-type': 'application/x-protobuf' },
      varyHeaders: publicKeys.slice(0, keys).map(key => ({ 'x-service-public-key': key })),
      connections: LOAD.connections,
      payload: { spans: LOAD.spans, pool: LOAD.connections, freshIds: false },
      mode: { kind: 'closed' },
      warmUpMs: LOAD.warmUpMs,
      durationMs,
    },
    end => {
      if (end === 'begin') meter.begin()
      else use = meter.end()
    },
  )
  const lookups = (await countLookups(redis)) - lookupsBefore
  await redis.empty(edge.queueDatabase, ['*:meta'])
  const { 200: answered = 0, ...others } = load.statuses
  if (Object.keys({ ...others, ...load.faults }).length > 0) {
    throw new Error(`the edge returned statuses other than 200: ${JSON.stringify({ ...others, ...load.faults })}`)
  }
  return {
    ok: load.ok,
    seconds: load.seconds,
    use,
    senderCpuSeconds: load.cpuSeconds,
    load,
    lookupsPerRequest: lookups / answered,
  }
}

/** Returns the number of key lookups: the edge uses GET only for keys. */
async function countLookups(redis: BenchRedis): Promise<number> {
  const admin = new Redis(redis.url(0))
  try {
    return Number(/^cmdstat_get:calls=(\d+)/m.exec(await admin.info('commandstats'))?.[1] ?? 0)
  } finally {
    admin.disconnect()
  }
}

function toRow(rotation: Rotation, measured: Results<AuthMeasured>, baseline: Rotation | undefined): Row {
  const load: IngestLoad = { ...LOAD, durationMs: rotation.durationMs }
  const under = (name: string) => `${name}, ${loadText(load)}`
  const ratios = baseline === undefined || rotation === baseline ? [] : [{ to: under(nameOf(baseline)) }]
  const row = ingestRow(nameOf(rotation), load, measured, ratios)
  const lookups = summarize(succeeded(measured).map(({ lookupsPerRequest }) => lookupsPerRequest)).median
  return { ...row, details: { ...row.details, 'lookups a request': lookups.toFixed(3) } }
}
