import { Redis } from 'ioredis'
import { KIB, MIB } from '../../schemas/units.ts'
import { createJobAdder } from '../../workers/queue/sweep.ts'
import { createBuildClient, UPLOADS_AT_ONCE } from '../load/build-client.ts'
import {
  createPlainSymbolicator,
  FRAMES_OF_A_STACK,
  makeStacks,
  type SymbolicationDeps,
  symbolicate,
  uploadRelease,
} from '../measure/measure-symbolication.ts'
import { type MeasuredUpload, measureBuild, measureDirect, type UploadDeps } from '../measure/measure-uploads.ts'
import { meterProcesses, type ProcessUse } from '../measure/process-meter.ts'
import { summarize } from '../report/statistics.ts'
import { type ProductSetup, planLaunch, setUpProduct } from '../services/product-process.ts'
import { startProcess } from '../services/start-process.ts'
import { type BenchS3, startBenchS3 } from '../services/start-s3.ts'
import { startBenchClickHouse, startBenchRedis } from '../services/start-stores.ts'
import { attempt, measureRounds, type Results, rowsOf, samplesOf, succeeded } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioContext, ScenarioRun } from '../support/scenario.ts'

const POOLS = 'source-maps,completions,receipts,symbolication'
const WARM_UP_FILES = 100
const LARGE_MAP_BYTES = 20 * MIB
/** Maps that take a quarter of the worker's cache when they are parsed. */
const WARM_MAPS = { maps: 20, bytes: 300 * KIB }

const FULL = { rounds: 2, files: 3_000, stacks: 2_000, symbolicationRounds: 3 }
const QUICK = { rounds: 1, files: 300, stacks: 400, symbolicationRounds: 1 }

const DIRECT = 'put directly'
type Way = 'signed' | 'parts' | 'direct'
const WAYS: readonly { readonly way: Way; readonly name: string }[] = [
  { way: 'signed', name: 'sign, put, complete' },
  { way: 'parts', name: 'parts, complete' },
  { way: 'direct', name: DIRECT },
]
const WARM = 'frames with a warm cache'
const FIRST = `first frame of a ${LARGE_MAP_BYTES / MIB} MiB map`
const ALONE = 'the libraries alone'

/** Measures uploads of source maps, and symbolication. */
export const scenario: Scenario = {
  name: 'source-maps',
  question:
    `How many source maps a second does a build of ${FULL.files.toLocaleString('en')} files upload and complete, with ` +
    `${UPLOADS_AT_ONCE} uploads in flight, against putting them into the same S3 server directly? How many stack frames a ` +
    'second does a worker resolve, and how soon the first one of a large map, against the libraries alone?',
  run,
}

interface Bench {
  readonly uploads: UploadDeps
  readonly symbolication: SymbolicationDeps
  readonly workerPid: number
}

async function run(context: ScenarioRun) {
  const redis = await startBenchRedis(context, { ownRewrites: true })
  const clickhouse = await startBenchClickHouse(context)
  const s3 = await startBenchS3(context)
  const setup = await setUpProduct(context, redis, clickhouse)
  const edge = await startProduct(context, setup, s3, 'edge')
  const worker = await startProduct(context, setup, s3, 'workers')
  const pids = { edge: edge.pid, worker: worker.pid, Redis: redis.pid, ClickHouse: clickhouse.pid, ...s3.pids }
  const queues = new Redis(redis.url(0))
  context.onEnd(() => queues.disconnect())
  const jobs = createJobAdder(queues)
  context.onEnd(() => jobs.close())
  const { secretKey, workspaceId, surfaceId } = setup.secrets
  const client = createBuildClient(context, edge.baseUrl, secretKey)
  const bench: Bench = {
    uploads: { client, s3, workspaceId, pids },
    symbolication: { client, clickhouse, redis: queues, jobs, owner: { workspaceId, surfaceId } },
    workerPid: worker.pid,
  }
  const sizes = context.quick ? QUICK : FULL
  const uploadRows = await attempt(context, 'uploads', [], () => measureUploads(context, bench, sizes))
  const symbolicationRows = await attempt(context, 'symbolication', [], () =>
    measureSymbolication(context, bench, sizes),
  )
  return {
    rows: [...uploadRows, ...symbolicationRows],
    method:
      `uploads: a warm-up of ${WARM_UP_FILES} files each way, ${sizes.rounds} rounds of ${sizes.files}, in rotating order; ` +
      `symbolication: 1 warm-up round, ${sizes.symbolicationRounds} of ${sizes.stacks} stacks of ${FRAMES_OF_A_STACK} frames`,
    notes: [
      'The maps of a build have a median of 8 KiB; one has 3 MiB and two have 1 MiB. Time runs from the first request to the response of the completion. The run fails unless the store contains every map exactly once.',
      '"Put directly" uses addresses that were presigned beforehand, the same client and the same concurrency. The product writes each map twice (at its upload address, and under its digest after verification) and reads it once.',
      'Stacks are queued for symbolication as a batch of spans does it, and count when their rows can be read from ClickHouse. The first stack frame of a map includes fetching the map. The libraries alone (error-stack-parser-es, @jridgewell/trace-mapping, in this process) have the maps in memory and do not name functions.',
      'All processes share the cores of the machine. The S3 server of `npm start` is a simulation in JavaScript.',
    ],
    facts: { Redis: redis.version, ClickHouse: clickhouse.version },
  }
}

async function startProduct(context: ScenarioContext, setup: ProductSetup, s3: BenchS3, name: 'edge' | 'workers') {
  const { script, env, baseUrl, readyUrl } = await planLaunch(name, setup)
  const args = name === 'workers' ? ['--pools', POOLS] : []
  const child = await startProcess(context, { script, args, env: { ...env, ...s3.env }, readyUrl })
  return { pid: child.pid, baseUrl }
}

async function measureUploads(context: ScenarioRun, { uploads }: Bench, sizes: typeof FULL): Promise<Row[]> {
  const measure = (way: Way, files: number) =>
    way === 'direct' ? measureDirect(uploads, files) : measureBuild(uploads, way, files)
  // A warm-up, which is shorter and not counted.
  for (const { way } of WAYS) await measure(way, WARM_UP_FILES)
  const results = await measureRounds(context, {
    what: 'uploads',
    rounds: sizes.rounds,
    contenders: WAYS.map(({ way, name }) => ({ name, measure: () => measure(way, sizes.files) })),
    describe: upload => `${filesPerSecond(upload).toFixed(0)} files/s`,
  })
  const rows = WAYS.flatMap(({ way, name }) => {
    const measured = results.get(name) ?? []
    return rowsOf(measured, () => uploadRows(name, measured, way === 'direct' ? undefined : DIRECT))
  })
  const builds = WAYS.filter(({ way }) => way !== 'direct').flatMap(({ name }) => results.get(name) ?? [])
  const peaks = samplesOf(builds, ({ use }) => (use.worker?.peakMemoryBytes ?? 0) / 1e6)
  return [...rows, ...rowsOf(builds, () => [{ name: "the worker's peak memory, uploads", unit: 'MB', samples: peaks }])]
}

const filesPerSecond = ({ files, seconds }: MeasuredUpload) => files / seconds
const inBytes = (name: string) => `${name}: bytes`

function uploadRows(name: string, results: Results<MeasuredUpload>, to?: string): Row[] {
  const measured = succeeded(results)
  const share = summarize(measured.map(({ uploadSeconds, seconds }) => uploadSeconds / seconds)).median
  return [
    {
      name,
      unit: 'files/s',
      samples: samplesOf(results, filesPerSecond),
      ...(to && { ratios: [{ to }] }),
      cpu: { per: '1,000 files', seconds: cpuOf(measured, ({ files }) => files / 1_000) },
      peakMemoryBytes: peaksOf(measured.map(({ use }) => use)),
      details: {
        'a build': `${(summarize(measured.map(({ bytes }) => bytes)).median / 1e6).toFixed(1)} MB`,
        ...(to && {
          'until the last byte is acknowledged': `${Math.round(share * 100)} % of the time`,
          refused: `${measured.map(({ refused }) => refused).join(', ')} by round`,
        }),
      },
    },
    {
      name: inBytes(name),
      unit: 'MB/s',
      samples: samplesOf(results, ({ bytes, seconds }) => bytes / 1e6 / seconds),
      ...(to && { ratios: [{ to: inBytes(to) }] }),
    },
  ]
}

function cpuOf(measured: readonly MeasuredUpload[], units: (one: MeasuredUpload) => number): Record<string, number> {
  return Object.fromEntries(
    Object.keys(measured[0]?.use ?? {}).map(name => [
      name,
      summarize(measured.map(one => (one.use[name]?.cpuSeconds ?? 0) / units(one))).median,
    ]),
  )
}

function peaksOf(uses: readonly Readonly<Record<string, ProcessUse>>[]): Record<string, number> {
  return Object.fromEntries(
    Object.keys(uses[0] ?? {}).map(name => [name, Math.max(...uses.map(use => use[name]?.peakMemoryBytes ?? 0))]),
  )
}

async function measureSymbolication(context: ScenarioContext, bench: Bench, sizes: typeof FULL): Promise<Row[]> {
  const { symbolication: deps, workerPid } = bench
  const release = await uploadRelease(deps, WARM_MAPS.maps, WARM_MAPS.bytes)
  const plain = createPlainSymbolicator(release)
  const warm = { product: [] as number[], alone: [] as number[] }
  const first = { product: [] as number[], alone: [] as number[] }
  const peaks: number[] = []
  // The first round parses the maps and compiles the code.
  for (let round = 0; round <= sizes.symbolicationRounds; round++) {
    const meter = meterProcesses({ worker: workerPid })
    meter.begin()
    const stacks = makeStacks(release, sizes.stacks)
    const frames = stacks.length * FRAMES_OF_A_STACK
    const framesPerSecond = frames / (await symbolicate(deps, release, stacks))
    const alone = measureAlone(() => plain(stacks), frames)
    const large = await measureFirstFrame(deps)
    context.progress(
      `symbolication, round ${round} of ${sizes.symbolicationRounds}: ${framesPerSecond.toFixed(0)} frames/s ` +
        `(alone ${alone.toFixed(0)}), first frame ${large.productMs.toFixed(0)} ms (alone ${large.aloneMs.toFixed(0)})`,
    )
    const { worker } = meter.end()
    if (round === 0) continue
    warm.product.push(framesPerSecond)
    warm.alone.push(alone)
    first.product.push(large.productMs)
    first.alone.push(large.aloneMs)
    peaks.push((worker?.peakMemoryBytes ?? 0) / 1e6)
  }
  return [
    { name: WARM, unit: 'frames/s', samples: warm.product, ratios: [{ to: `${WARM}: ${ALONE}` }] },
    { name: `${WARM}: ${ALONE}`, unit: 'frames/s', samples: warm.alone },
    { name: FIRST, unit: 'ms', samples: first.product, ratios: [{ to: `${FIRST}: ${ALONE}` }] },
    { name: `${FIRST}: ${ALONE}`, unit: 'ms', samples: first.alone },
    { name: "the worker's peak memory, symbolication", unit: 'MB', samples: peaks },
  ]
}

/** Returns stack frames a second. Throws if one was not resolved, because the maps contain all positions. */
function measureAlone(work: () => number, frames: number): number {
  const startedAt = performance.now()
  const resolved = work()
  const seconds = (performance.now() - startedAt) / 1_000
  if (resolved !== frames) throw new Error(`${resolved} of ${frames} frames were resolved`)
  return frames / seconds
}

/** Measures a stack whose map is not parsed yet. */
async function measureFirstFrame(deps: SymbolicationDeps): Promise<{ productMs: number; aloneMs: number }> {
  const release = await uploadRelease(deps, 1, LARGE_MAP_BYTES)
  const stacks = makeStacks(release, 1)
  const productMs = (await symbolicate(deps, release, stacks)) * 1_000
  const plain = createPlainSymbolicator(release)
  const startedAt = performance.now()
  if (plain(stacks) !== FRAMES_OF_A_STACK) throw new Error('a frame was not resolved')
  return { productMs, aloneMs: performance.now() - startedAt }
}
