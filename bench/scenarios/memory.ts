import { setTimeout as delay } from 'node:timers/promises'
import { IMAGE_EDGE_MEMORY, IMAGE_MALLOC } from '../../test/support/containers/image-malloc.ts'
import { readLargeTrace, storeLargeTrace } from '../data/large-trace.ts'
import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import { meterProcesses } from '../measure/process-meter.ts'
import { type ProductProcess, type ProductSetup, planLaunch, setUpProduct } from '../services/product-process.ts'
import { startProcess } from '../services/start-process.ts'
import { type BenchClickHouse, startBenchClickHouse, startBenchRedis } from '../services/start-stores.ts'
import { pollUntil } from '../support/poll-until.ts'
import type { Row, Scenario, ScenarioContext } from '../support/scenario.ts'

const SPANS = 200
const CONNECTIONS = 64
const READERS = 16
const STORED_DEADLINE_MS = 120_000

/** States reported for each process. */
const REPORTED: readonly { process: string; states: readonly State[] }[] = [
  { process: 'edge', states: ['idle', 'full load', 'ClickHouse away'] },
  { process: 'worker', states: ['idle', 'full load', 'ClickHouse away', 'catching up'] },
  { process: 'API', states: ['idle', 'reading traces'] },
  { process: 'Redis', states: ['idle', 'full load', 'ClickHouse away'] },
  { process: 'ClickHouse', states: ['idle', 'full load', 'catching up'] },
]
type State = 'idle' | 'reading traces' | 'full load' | 'ClickHouse away' | 'catching up'

/** Peak resident set by process, in MB. */
type Peaks = Readonly<Record<string, number>>

interface Measured {
  readonly peaks: Readonly<Record<State, Peaks>>
  /** Peaks of both halves of the time without ClickHouse. Bounded memory does not grow in the second half. */
  readonly halves: readonly [Peaks, Peaks]
  readonly reads: number
  /** Spans accepted under full load, and while ClickHouse was unavailable. */
  readonly accepted: { readonly loaded: number; readonly away: number }
}

/** Measures the memory of each process. */
export const scenario: Scenario = {
  name: 'memory',
  question:
    'How much memory does each process use when idle, under full load, and under full load while ClickHouse is ' +
    'unavailable?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: true })
    const clickhouse = await startBenchClickHouse(context)
    const product = await startAll(context, await setUpProduct(context, redis, clickhouse))
    const measured = await measureStates(context, clickhouse, {
      ...product,
      pids: { ...product.pids, Redis: redis.pid, ClickHouse: clickhouse.pid },
    })
    const { reads, accepted } = measured
    return {
      rows: toRows(measured),
      method: `one pass: 1 s idle after 3 s of rest, then ${context.quick ? 3 : 8} s of full load, and the same with ClickHouse unavailable; no warm-up`,
      notes: [
        `Peaks of the resident set, as the kernel reports them. All settings have their defaults, and malloc and the heap of the edge those of the image, with which processes run where their memory has a limit. In the scenario pipeline they run without. Full load is ${CONNECTIONS} connections that send payloads of ${SPANS} spans as fast as they are accepted, until the last span is stored.`,
        'ClickHouse is stopped with SIGSTOP ("ClickHouse away"): its connections stay open without a response. "Catching up" is the time from SIGCONT until the last span is stored.',
        `${accepted.loaded.toLocaleString('en')} spans were accepted under full load and ${accepted.away.toLocaleString('en')} without ClickHouse, and all of them were stored. The API served ${reads.toLocaleString('en')} reads of a trace of 1,000 spans over ${READERS} connections.`,
      ],
      facts: { Redis: redis.version, ClickHouse: clickhouse.version },
    }
  },
}

interface Product {
  readonly setup: ProductSetup
  readonly generator: LoadGenerator
  readonly edge: { readonly baseUrl: string; readonly port: number }
  readonly api: { readonly baseUrl: string }
  readonly pids: Readonly<Record<string, number>>
}

async function startAll(context: ScenarioContext, setup: ProductSetup): Promise<Product> {
  const generator = await startGenerator()
  context.onEnd(() => generator.stop())
  const start = async (name: ProductProcess) => {
    const launch = await planLaunch(name, setup)
    const env = { ...launch.env, ...(name === 'edge' ? IMAGE_EDGE_MEMORY : IMAGE_MALLOC) }
    return { ...launch, pid: (await startProcess(context, { ...launch, env })).pid }
  }
  const [edge, workers, api] = [await start('edge'), await start('workers'), await start('api')]
  return { setup, generator, edge, api, pids: { edge: edge.pid, worker: workers.pid, API: api.pid } }
}

async function measureStates(
  { quick, progress, onEnd }: ScenarioContext,
  clickhouse: BenchClickHouse,
  product: Product,
): Promise<Measured> {
  const loadMs = quick ? 3_000 : 8_000
  const peaksDuring = (work: () => Promise<unknown>) => measurePeaks(product.pids, work)
  const stored = () => untilStored(clickhouse, trace.spans + loaded + away)
  let [loaded, away, reads] = [0, 0, 0]

  progress('idle')
  await delay(3_000)
  const idle = await peaksDuring(() => delay(1_000))

  progress('reading traces')
  const trace = await storeLargeTrace(product.edge.baseUrl, product.api.baseUrl, product.setup.secrets)
  const reading = await peaksDuring(async () => {
    reads = await readLargeTrace(trace, READERS, loadMs / 4)
  })

  progress('full load')
  const underLoad = await peaksDuring(async () => {
    loaded = await sendSpans(product, loadMs)
    await stored()
  })

  progress('full load, ClickHouse unavailable')
  onEnd(() => void process.kill(clickhouse.pid, 'SIGCONT'))
  process.kill(clickhouse.pid, 'SIGSTOP')
  const sendHalf = async () => {
    away += await sendSpans(product, loadMs / 2)
  }
  const halves = [await peaksDuring(sendHalf), await peaksDuring(sendHalf)] as const
  progress('ClickHouse is available again')
  process.kill(clickhouse.pid, 'SIGCONT')
  const catchingUp = await peaksDuring(stored)
  return {
    peaks: {
      idle,
      'reading traces': reading,
      'full load': underLoad,
      'ClickHouse away': larger(...halves),
      'catching up': catchingUp,
    },
    halves,
    reads,
    accepted: { loaded, away },
  }
}

async function measurePeaks(pids: Product['pids'], work: () => Promise<unknown>): Promise<Peaks> {
  const meter = meterProcesses(pids)
  meter.begin()
  await work()
  return Object.fromEntries(Object.entries(meter.end()).map(([name, use]) => [name, use.peakMemoryBytes / 1e6]))
}

const larger = (a: Peaks, b: Peaks): Peaks =>
  Object.fromEntries(Object.entries(a).map(([name, peak]) => [name, Math.max(peak, b[name] ?? 0)]))

/** Sends as fast as the edge accepts, and obeys Retry-After. Resolves with the number of accepted spans. */
async function sendSpans({ generator, edge, setup }: Product, durationMs: number): Promise<number> {
  const { statuses, faults } = await generator.run({
    port: edge.port,
    path: '/drain/v1/traces',
    headers: { 'x-service-public-key': setup.secrets.publicKey, 'content-type': 'application/x-protobuf' },
    connections: CONNECTIONS,
    payload: { spans: SPANS, pool: 4 * CONNECTIONS, freshIds: true },
    mode: { kind: 'closed' },
    warmUpMs: 0,
    durationMs,
  })
  const { 200: ok = 0, 429: _refused, ...others } = { ...statuses, ...faults }
  if (Object.keys(others).length > 0)
    throw new Error(`the edge returned statuses other than 200 and 429: ${JSON.stringify(others)}`)
  return ok * SPANS
}

async function untilStored({ client }: BenchClickHouse, spans: number): Promise<void> {
  let found = 0
  const isStored = async () => {
    const result = await client.query({ query: 'SELECT count() AS n FROM spans', format: 'JSONEachRow' })
    const [row] = await result.json<{ n: string }>()
    found = Number(row?.n)
    return found >= spans
  }
  await pollUntil(`${spans} spans are stored`, STORED_DEADLINE_MS, isStored, 100)
  if (found !== spans) throw new Error(`${found} spans were stored of ${spans} that were accepted`)
}

function toRows({ peaks, halves }: Measured): Row[] {
  return REPORTED.flatMap(({ process, states }) =>
    states.map(state => ({
      name: `${process}, ${state}`,
      unit: 'MB',
      samples: [peaks[state][process] ?? 0],
      ...(state === 'ClickHouse away' && {
        details: { 'first half, second half': halves.map(half => `${Math.round(half[process] ?? 0)} MB`).join(', ') },
      }),
    })),
  )
}
