import { setTimeout as delay } from 'node:timers/promises'
import type { LoadPlan, LoadResult } from '../load/plan.ts'
import type { LoadGenerator } from '../load/start-generator.ts'
import { BENCH_DATABASE, type BenchClickHouse } from '../services/start-stores.ts'
import { pollUntil } from '../support/poll-until.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { settleMerges, truncateTables } from './clickhouse-work.ts'
import { meterProcesses, type ProcessUse } from './process-meter.ts'

/** Spans of a payload where capacity and cost per span are measured. */
export const SPANS = 200
export const CONNECTIONS = 64
const STORED_DEADLINE_MS = 120_000

/** Result of a load that is stored. */
export interface Stored {
  readonly spans: number
  /** Time from the first request until the last span could be queried. */
  readonly seconds: number
  /** Use of the processes, including the merges that the inserts caused. */
  readonly use: Readonly<Record<string, ProcessUse>>
}

/** Returns the plan of a usual load of traces, without its mode and duration. */
export function tracesPlan(port: number, publicKey: string) {
  return {
    port,
    path: '/drain/v1/traces',
    headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': publicKey },
    connections: CONNECTIONS,
    payload: { spans: SPANS, pool: 4 * CONNECTIONS, freshIds: true },
    warmUpMs: 0,
  }
}

/**
 * Sends traces to empty tables and waits until everything that was accepted can be queried. Throws on any status other
 * than 200 and 429, and if the number of stored spans differs from the number accepted.
 */
export async function measureStored(
  { generator, clickhouse: { client } }: { generator: LoadGenerator; clickhouse: BenchClickHouse },
  pids: Readonly<Record<string, number>>,
  plan: LoadPlan,
): Promise<Stored> {
  await truncateTables(client, BENCH_DATABASE)
  const meter = meterProcesses(pids)
  let startedAt = 0
  try {
    const load = await generator.run(plan, edge => {
      if (edge === 'end') return
      startedAt = performance.now()
      meter.begin()
    })
    const spans = acceptedSpans(load)
    await untilStored(client, spans)
    const seconds = (performance.now() - startedAt) / 1_000
    await settleMerges(client)
    return { spans, seconds, use: meter.end() }
  } catch (error) {
    await untilNothingComes(client)
    throw error
  }
}

/**
 * Measures capacity in spans a second: a warm-up and two runs, of which the faster one counts, so that a slow moment of the
 * machine does not make the shares of it too small.
 */
export async function measureCapacity(
  { quick, progress }: ScenarioContext,
  measure: (durationMs: number) => Promise<Stored>,
): Promise<number> {
  await measure(quick ? 1_000 : 2_000)
  const runs = [await measure(quick ? 1_500 : 3_000), await measure(quick ? 1_500 : 3_000)]
  const capacity = Math.max(...runs.map(({ spans, seconds }) => spans / seconds))
  progress(`capacity: ${Math.round(capacity).toLocaleString('en')} spans/s`)
  return capacity
}

/**
 * Returns the accepted spans. Throws if a request had no response or a status other than 200 and 429, because it may be
 * stored or not.
 */
export function acceptedSpans({ statuses, faults }: LoadResult): number {
  const { 200: ok = 0, 429: _refused, ...others } = statuses
  const unexpected = { ...others, ...faults }
  if (Object.keys(unexpected).length > 0) {
    throw new Error(`the edge returned statuses other than 200 and 429: ${JSON.stringify(unexpected)}`)
  }
  return ok * SPANS
}

/** Waits until exactly this many spans can be queried. */
export async function untilStored(client: BenchClickHouse['client'], accepted: number): Promise<void> {
  await pollUntil(
    `${accepted} spans are stored`,
    STORED_DEADLINE_MS,
    async () => {
      const found = await countSpans(client)
      if (found > accepted) throw new Error(`${found} spans are stored, ${accepted} were accepted`)
      return found === accepted
    },
    50,
  )
}

/**
 * Waits until the number of spans has been the same for some seconds. To be called when a round has failed, so that what the
 * queue still has is not counted in the next one.
 */
export async function untilNothingComes(client: BenchClickHouse['client']): Promise<void> {
  await untilSame(() => countSpans(client))
}

const SAME_FOR_MS = 5_000

/** Waits until a count has been the same for some seconds, at most as long as anything may take to be stored. */
export async function untilSame(count: () => Promise<number>): Promise<void> {
  const deadline = performance.now() + STORED_DEADLINE_MS
  let last = await count()
  let sameSince = performance.now()
  while (performance.now() - sameSince < SAME_FOR_MS && performance.now() < deadline) {
    await delay(200)
    const now = await count()
    if (now !== last) sameSince = performance.now()
    last = now
  }
}

/** Returns the number of spans that can be queried. */
export async function countSpans(client: BenchClickHouse['client']): Promise<number> {
  const result = await client.query({ query: 'SELECT count() AS n FROM spans', format: 'JSONEachRow' })
  const [row] = await result.json<{ n: number }>()
  return Number(row?.n)
}
