import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { Trace, TraceColumns } from '../../../schemas/http/traces/schemas.ts'
import type { TraceTarget } from '../../data/stored-traces.ts'
import { percentile } from '../../report/statistics.ts'
import type { ReadBy, TraceReader } from '../../services/start-trace-reader.ts'
import { meterProcesses } from '../process-meter.ts'
import { countRowsRead, type ReadPlan, timeEach } from './measure-gets.ts'

/** Cost of sequential reads of traces of one size. */
export interface MeasuredReads {
  readonly p50Ms: readonly number[]
  readonly p99Ms: readonly number[]
  /** Rows read by all queries of a read through the API. */
  readonly rows: number
  /** CPU time by process per read through the API: both queries and all other work. */
  readonly cpuMs: Readonly<Record<string, number>>
  readonly answerBytes: number
}

/** Names of the reads of large traces in reports. */
export const LARGE_TRACE: Readonly<Record<ReadBy, string>> = { finding: 'trace of 1,000', id: 'trace of 1,000 by id' }

/** The API, ClickHouse, and their processes. */
export interface ReadDeps {
  readonly reader: TraceReader
  readonly client: ClickHouseClient
  /** Pids of the API and ClickHouse. */
  readonly pids: Readonly<Record<string, number>>
}

/** Measures reads of these traces. Throws if a response is not the whole trace. */
export async function measureReads(
  { reader, client, pids }: ReadDeps,
  targets: readonly TraceTarget[],
  by: ReadBy,
  { rounds, perRound }: ReadPlan,
): Promise<MeasuredReads> {
  const targetOf = (i: number) => targets[i % targets.length] as TraceTarget
  for (let i = 0; i < perRound / 2; i++) assertWhole(await reader.read(targetOf(i), by), by, targetOf(i).spans)

  const meter = meterProcesses(pids)
  const rowsBefore = await countRowsRead(client)
  meter.begin()
  const latencies: number[][] = []
  let answerBytes = 0
  for (let round = 0; round < rounds; round++) {
    latencies.push(
      await timeEach(perRound, async i => {
        answerBytes += await reader.receive(targetOf(round * perRound + i), by)
      }),
    )
  }
  const reads = rounds * perRound
  const use = meter.end()
  const rows = ((await countRowsRead(client)) - rowsBefore) / reads
  return {
    p50Ms: latencies.map(round => percentile(round, 0.5)),
    p99Ms: latencies.map(round => percentile(round, 0.99)),
    rows,
    cpuMs: Object.fromEntries(
      Object.entries(use).map(([name, { cpuSeconds }]) => [name, (cpuSeconds / reads) * 1_000]),
    ),
    answerBytes: answerBytes / reads,
  }
}

/** Throws unless a body has all spans of a trace. By its id a trace is read as columns. */
function assertWhole(body: string, by: ReadBy, stored: number): void {
  const found =
    by === 'finding' ? (JSON.parse(body) as Trace).spans.length : (JSON.parse(body) as TraceColumns).spanCount
  if (found !== stored) throw new Error(`the API returned ${found} spans instead of ${stored}`)
}
