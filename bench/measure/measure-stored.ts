import type { LoadPlan, LoadResult } from '../load/plan.ts'
import type { LoadGenerator } from '../load/start-generator.ts'
import { BENCH_DATABASE, type BenchClickHouse } from '../services/start-stores.ts'
import { pollUntil } from '../support/poll-until.ts'
import { settleMerges, truncateTables } from './clickhouse-work.ts'
import { meterProcesses, type ProcessUse } from './process-meter.ts'

/** Spans of a payload wherever capacity and cost per span are asked for. */
export const SPANS = 200
const STORED_DEADLINE_MS = 120_000

export interface StoredLoad {
  /** One a generator: all of them send at once. */
  readonly plans: readonly LoadPlan[]
  /** Of every process whose work counts. */
  readonly pids: Readonly<Record<string, number>>
}

export interface Stored {
  readonly spans: number
  /** From the first request until the last span could be queried. */
  readonly seconds: number
  /** Merges that the inserts caused included. */
  readonly use: Readonly<Record<string, ProcessUse>>
  readonly loads: readonly LoadResult[]
}

/** Where the product takes traces, for a plan to begin with. */
export function tracesPlan(port: number, publicKeys: readonly string[]) {
  return {
    port,
    path: '/drain/v1/traces',
    headers: { 'content-type': 'application/x-protobuf' },
    varyHeaders: publicKeys.map(key => ({ 'x-service-public-key': key })),
  }
}

/**
 * Sends traces to empty tables and waits until all that was accepted can be queried. Throws when something was answered
 * other than 200 or 429, and when another number of spans is stored than was accepted.
 */
export async function measureStored(
  generators: readonly LoadGenerator[],
  { client }: BenchClickHouse,
  { plans, pids }: StoredLoad,
): Promise<Stored> {
  await truncateTables(client, BENCH_DATABASE)
  const meter = meterProcesses(pids)
  let startedAt: number | undefined
  const loads = await Promise.all(
    plans.map((plan, i) =>
      (generators[i] as LoadGenerator).run(plan, () => {
        if (startedAt !== undefined) return
        startedAt = performance.now()
        meter.begin()
      }),
    ),
  )
  const accepted = loads.reduce((sum, load) => sum + acceptedSpans(load), 0)
  await untilStored(client, accepted)
  const seconds = (performance.now() - (startedAt ?? 0)) / 1_000
  await settleMerges(client)
  return { spans: accepted, seconds, use: meter.end(), loads }
}

/** Throws when a request was answered other than 200 or 429, or not at all: then nobody knows what is to be stored. */
export function acceptedSpans({ statuses, faults }: LoadResult): number {
  const { 200: ok = 0, 429: _refused, ...others } = statuses
  const unexpected = { ...others, ...faults }
  if (Object.keys(unexpected).length > 0) {
    throw new Error(`the edge answered other than 200 and 429: ${JSON.stringify(unexpected)}`)
  }
  return ok * SPANS
}

/** Waits until exactly so many spans can be queried. */
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

async function countSpans(client: BenchClickHouse['client']): Promise<number> {
  const result = await client.query({ query: 'SELECT count() AS n FROM spans', format: 'JSONEachRow' })
  const [row] = await result.json<{ n: number }>()
  return Number(row?.n)
}
