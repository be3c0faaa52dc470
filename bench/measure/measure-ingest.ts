import type { LoadPlan, LoadResult } from '../load/plan.ts'
import type { LoadGenerator } from '../load/start-generator.ts'
import { readMetric } from '../support/read-metric.ts'
import { meterProcesses, type ProcessUse } from './process-meter.ts'

/** Payload size, connections and duration of a load. */
export interface IngestLoad {
  readonly spans: number
  readonly connections: number
  readonly warmUpMs: number
  readonly durationMs: number
}

/** A server under load. Its processes are itself (`edge`) and the stores it writes to. */
export interface IngestContender {
  readonly name: string
  readonly port: number
  readonly publicKey: string
  readonly pids: Readonly<Record<string, number>>
  /** Address of the metrics that count payloads per commit. */
  readonly adminUrl?: string
  /** Removes what was accepted, so that every round starts empty. */
  empty(): Promise<void>
}

/** Result of one window. */
export interface IngestMeasured {
  /** Payloads acknowledged in the window. */
  readonly ok: number
  readonly seconds: number
  readonly use: Readonly<Record<string, ProcessUse>>
  /** CPU time of the sender. */
  readonly senderCpuSeconds: number
  readonly load: LoadResult
  readonly payloadsPerCommit?: number
}

/** Measures one window of HTTP requests. Throws if any response is not 200. */
export async function measureRequests(
  generator: LoadGenerator,
  contender: IngestContender,
  { spans, connections, warmUpMs, durationMs }: IngestLoad,
): Promise<IngestMeasured> {
  const plan: LoadPlan = {
    port: contender.port,
    path: '/drain/v1/traces',
    headers: { 'x-service-public-key': contender.publicKey, 'content-type': 'application/x-protobuf' },
    connections,
    payload: { spans, pool: connections, freshIds: false },
    mode: { kind: 'closed' },
    warmUpMs,
    durationMs,
  }
  const before = await readCommits(contender)
  const meter = meterProcesses(contender.pids)
  let use: Record<string, ProcessUse> = {}
  const load = await runAndEmpty(generator, contender, plan, edge => {
    if (edge === 'begin') meter.begin()
    else use = meter.end()
  })
  const after = await readCommits(contender)
  return {
    ok: load.ok,
    seconds: load.seconds,
    use,
    senderCpuSeconds: load.cpuSeconds,
    load,
    ...(before &&
      after && { payloadsPerCommit: (after.payloads - before.payloads) / (after.commits - before.commits) }),
  }
}

/** Runs a load and removes what was accepted, even after an error. Throws if any response is not 200. */
export async function runAndEmpty(
  generator: LoadGenerator,
  contender: IngestContender,
  plan: LoadPlan,
  onWindow?: (edge: 'begin' | 'end') => void,
): Promise<LoadResult> {
  const load = await generator.run(plan, onWindow).finally(() => contender.empty())
  const { 200: _ok, ...others } = { ...load.statuses, ...load.faults }
  if (Object.keys(others).length === 0) return load
  throw new Error(`${contender.name} returned statuses other than 200: ${JSON.stringify(others)}`)
}

/** Returns the commits of the edge so far and their payloads, or zeros for other contenders. */
async function readCommits({ adminUrl }: IngestContender): Promise<{ commits: number; payloads: number } | undefined> {
  if (adminUrl === undefined) return undefined
  return {
    commits: await readMetric(adminUrl, 'penstock_commit_frames_count', 'queue="traces"'),
    payloads: await readMetric(adminUrl, 'penstock_commit_frames_sum', 'queue="traces"'),
  }
}
