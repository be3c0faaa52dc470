import type { LoadPlan, LoadResult } from '../load/plan.ts'
import type { LoadGenerator } from '../load/start-generator.ts'
import { BENCH_DATABASE, type BenchClickHouse } from '../services/start-stores.ts'
import { settleMerges } from './clickhouse-work.ts'
import { countSpans, SPANS, untilSame } from './measure-stored.ts'
import { type Written, watchParts } from './part-watch.ts'
import { meterProcesses, type ProcessUse } from './process-meter.ts'

/** A part of the load, between two readings. */
interface Slice {
  readonly seconds: number
  /** Spans that became visible in it. */
  readonly spans: number
  readonly cpuSeconds: Readonly<Record<string, number>>
}

/** Result of a long load. */
export interface Sustained {
  readonly load: LoadResult
  readonly slices: readonly Slice[]
  /** Use of the processes, including the merges after the load. */
  readonly use: Readonly<Record<string, ProcessUse>>
  readonly written: Written
  readonly accepted: number
  readonly stored: number
  /** Requests that may be stored or not: without an answer, or answered with anything but 200 and 429. */
  readonly unknownRequests: number
}

/** The collaborators of a long load. */
interface SustainedDeps {
  readonly generator: LoadGenerator
  readonly clickhouse: BenchClickHouse
  readonly pids: Readonly<Record<string, number>>
}

const SLICES = 4

/** Sends the load, reads the processes at each quarter of it, and waits until everything is stored and merged. */
export async function measureSustained(
  { generator, clickhouse: { client }, pids }: SustainedDeps,
  plan: LoadPlan,
): Promise<Sustained> {
  const watch = await watchParts(client, BENCH_DATABASE)
  const meter = meterProcesses(pids)
  const slices: Slice[] = []
  let last = { at: performance.now(), spans: await countSpans(client), cpuSeconds: {} as Record<string, number> }

  async function readSlice(): Promise<void> {
    const use = Object.entries(meter.end())
    const now = {
      at: performance.now(),
      spans: await countSpans(client),
      cpuSeconds: Object.fromEntries(use.map(([name, { cpuSeconds }]) => [name, cpuSeconds])),
    }
    slices.push({
      seconds: (now.at - last.at) / 1_000,
      spans: now.spans - last.spans,
      cpuSeconds: Object.fromEntries(
        Object.entries(now.cpuSeconds).map(([name, seconds]) => [name, seconds - (last.cpuSeconds[name] ?? 0)]),
      ),
    })
    last = now
  }

  const before = last.spans
  let reading = Promise.resolve()
  function readNext(): void {
    reading = reading.then(readSlice)
    // An error is thrown after the load. Until then it must not end the process.
    reading.catch(() => {})
  }
  const timers: NodeJS.Timeout[] = []
  const load = await generator
    .run(plan, edge => {
      if (edge === 'end') return readNext()
      meter.begin()
      last = { ...last, at: performance.now() }
      for (let slice = 1; slice < SLICES; slice++) {
        timers.push(setTimeout(readNext, (slice * plan.durationMs) / SLICES))
      }
    })
    .finally(() => timers.forEach(clearTimeout))
  await reading
  await untilSame(() => countSpans(client))
  await settleMerges(client)
  const { 200: ok = 0, 429: _refused, ...others } = { ...load.statuses, ...load.faults }
  return {
    load,
    slices,
    use: meter.end(),
    written: await watch.stop(),
    accepted: ok * SPANS,
    stored: (await countSpans(client)) - before,
    unknownRequests: Object.values(others).reduce((sum, count) => sum + count, 0),
  }
}
