import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { answers, startChild } from '../../deploy/local/processes/child-process.ts'
import { type Example, exampleExport } from '../../deploy/local/workspace/example.ts'
import { meterProcesses } from '../measure/process-meter.ts'
import { summarize } from '../report/statistics.ts'
import { type ProductLaunch, type ProductSetup, planLaunch, setUpProduct } from '../services/product-process.ts'
import { ROOT } from '../services/start-process.ts'
import { type BenchClickHouse, startBenchClickHouse, startBenchRedis } from '../services/start-stores.ts'
import { pollUntil } from '../support/poll-until.ts'
import type { Row, Scenario, ScenarioContext } from '../support/scenario.ts'

const END_WITH_PARENT = fileURLToPath(new URL('../../deploy/local/processes/end-with-parent.mjs', import.meta.url))
const DEADLINE_MS = 20_000
const POLL_MS = 10

interface Start {
  readonly readyMs: number
  readonly readyCpuSeconds: number
  /** Time until the first work was done. */
  readonly workedMs: number
  readonly peakMemoryBytes: number
}

const FIRST_WORK = {
  edge: 'first acknowledged request',
  workers: 'first stored span',
  api: 'first trace read',
} as const
type Name = keyof typeof FIRST_WORK

/** Measures the start of each process. */
export const scenario: Scenario = {
  name: 'cold-start',
  question:
    'How long does each process take from its start until it is ready, and until its first work is done, with the stores ' +
    'running and migrated?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: true })
    const clickhouse = await startBenchClickHouse(context)
    const setup = await setUpProduct(context, redis, clickhouse)
    const repetitions = context.quick ? 2 : 5
    const starts: Record<Name, Start[]> = { edge: [], workers: [], api: [] }
    const floors: Floor[] = []
    // The first start is not counted. It fills the caches of the file system.
    for (let repetition = 0; repetition <= repetitions; repetition++) {
      const started = await startAll(context, setup, clickhouse)
      const floor = await startNothing()
      if (repetition === 0) continue
      floors.push(floor)
      for (const name of ['edge', 'workers', 'api'] as const) starts[name].push(started[name])
      const times = Object.entries(started).map(([name, { readyMs }]) => `${name} ${Math.round(readyMs)} ms`)
      context.progress(`start ${repetition}/${repetitions}, ready after: ${times.join(', ')}`)
    }
    return {
      rows: [
        ...(['edge', 'workers', 'api'] as const).flatMap(name => toRows(name, starts[name])),
        { name: FLOOR, unit: 'ms', samples: floors.map(({ ms }) => ms), cpu: cpuOf(floors) },
      ],
      method: `${repetitions} starts of each process, after one that is not counted`,
      notes: [
        'Each process starts like its npm script, while the two others are stopped, without NODE_COMPILE_CACHE. It is ready at the first 200 of /readyz, which is polled every 10 ms.',
        'The first work starts when the process is ready. The edge gets a request with one span. The workers store that span, which waits in Redis. The API returns its trace.',
      ],
      facts: { Redis: redis.version, ClickHouse: clickhouse.version },
    }
  },
}

/**
 * Follows one span through processes that have just started: accepted by an edge, stored by workers, read from the API.
 */
async function startAll(
  context: ScenarioContext,
  setup: ProductSetup,
  clickhouse: BenchClickHouse,
): Promise<Record<Name, Start>> {
  const example = exampleExport(setup.secrets, Date.now())
  const start = async (name: Name, work: (launch: ProductLaunch) => Promise<void>) => {
    const launch = await planLaunch(name, setup)
    return timeStart(context, launch, () => work(launch))
  }
  return {
    edge: await start('edge', launch => send(launch, setup, example)),
    workers: await start('workers', () => untilStored(clickhouse, example)),
    api: await start('api', launch => readTrace(launch, setup, example)),
  }
}

async function timeStart(
  context: ScenarioContext,
  { script, env, readyUrl }: ProductLaunch,
  work: () => Promise<void>,
): Promise<Start> {
  const startedAt = performance.now()
  const child = await startChild({
    command: process.execPath,
    args: ['--import', END_WITH_PARENT, script],
    cwd: ROOT,
    env: { ...process.env, NODE_COMPILE_CACHE: undefined, LOG_LEVEL: 'warn', NODE_ENV: 'production', ...env },
    log: context.progress,
  })
  try {
    const meter = meterProcesses({ started: child.pid })
    meter.begin()
    const isReady = () => {
      if (child.hasExited) throw new Error(`${script} ended while starting`)
      return answers(readyUrl, [200]).catch(() => false)
    }
    await pollUntil(`${script} is ready`, DEADLINE_MS, isReady, POLL_MS)
    const readyMs = performance.now() - startedAt
    const readyCpuSeconds = meter.end().started?.cpuSeconds ?? 0
    await work()
    const workedMs = performance.now() - startedAt
    return { readyMs, readyCpuSeconds, workedMs, peakMemoryBytes: meter.end().started?.peakMemoryBytes ?? 0 }
  } finally {
    await child.stop(5_000)
  }
}

async function send({ baseUrl }: ProductLaunch, { secrets }: ProductSetup, { body }: Example): Promise<void> {
  const response = await fetch(`${baseUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'x-service-public-key': secrets.publicKey, 'content-type': 'application/x-protobuf' },
    body: Buffer.from(body),
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  if (response.status !== 200) throw new Error(`the edge returned ${response.status}: ${await response.text()}`)
}

async function untilStored({ client }: BenchClickHouse, { traceId }: Example): Promise<void> {
  const query = 'SELECT count() AS n FROM spans WHERE trace_id = unhex({traceId: String})'
  await pollUntil(
    'the span is stored',
    DEADLINE_MS,
    async () => {
      const result = await client.query({ query, query_params: { traceId }, format: 'JSONEachRow' })
      const [row] = await result.json<{ n: string }>()
      return Number(row?.n) === 1
    },
    POLL_MS,
  )
}

async function readTrace({ baseUrl }: ProductLaunch, { secrets }: ProductSetup, example: Example): Promise<void> {
  const response = await fetch(`${baseUrl}/v3/findings/${example.findingId}/traces/${example.traceId}`, {
    headers: { authorization: `Bearer ${secrets.sessionToken}` },
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`the API returned ${response.status}: ${text}`)
}

interface Floor {
  readonly ms: number
  readonly cpuSeconds: number
}

const FLOOR = 'Node with nothing to run, until its end'

/** Measures the cost of starting a script that does nothing. */
async function startNothing(): Promise<Floor> {
  const startedAt = performance.now()
  const args = ['--eval', 'console.log(JSON.stringify(process.cpuUsage()))']
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, timeout: DEADLINE_MS })
  const { user, system } = JSON.parse(stdout) as NodeJS.CpuUsage
  return { ms: performance.now() - startedAt, cpuSeconds: (user + system) / 1e6 }
}

const cpuOf = (started: readonly { readonly cpuSeconds: number }[]): NonNullable<Row['cpu']> => ({
  per: 'start',
  seconds: { process: summarize(started.map(({ cpuSeconds }) => cpuSeconds)).median },
})

function toRows(name: Name, starts: readonly Start[]): Row[] {
  return [
    {
      name: `${name}, ready`,
      unit: 'ms',
      samples: starts.map(({ readyMs }) => readyMs),
      ratios: [{ to: FLOOR }],
      cpu: cpuOf(starts.map(({ readyCpuSeconds }) => ({ cpuSeconds: readyCpuSeconds }))),
      peakMemoryBytes: { process: Math.max(...starts.map(({ peakMemoryBytes }) => peakMemoryBytes)) },
    },
    { name: `${name}, ${FIRST_WORK[name]}`, unit: 'ms', samples: starts.map(({ workedMs }) => workedMs) },
  ]
}
