import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { Trace } from '../../../schemas/http/traces/schemas.ts'
import {
  allNumbers,
  countTraces,
  DAYS,
  LARGE_TRACE_SPANS,
  SMALL_TRACE_SPANS,
  tracesQuery,
} from '../../data/stored-traces.ts'
import { percentile } from '../../report/statistics.ts'
import type { TraceReader, TraceTarget } from '../../services/start-trace-reader.ts'
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

/** The API, ClickHouse, and their processes. */
export interface ReadDeps {
  readonly reader: TraceReader
  readonly client: ClickHouseClient
  /** Pids of the API and ClickHouse. */
  readonly pids: Readonly<Record<string, number>>
}

/** Returns the spans of a small or large trace. */
export const spansOf = (isLarge: boolean) => (isLarge ? LARGE_TRACE_SPANS : SMALL_TRACE_SPANS)

/** Picks up to `limit` traces with findings pseudo-randomly, the same in every run. */
export async function pickTraces(
  client: ClickHouseClient,
  spans: number,
  firstDay: string,
  isLarge: boolean,
  limit: number,
  days: number = DAYS,
): Promise<TraceTarget[]> {
  const counts = countTraces(spans, days)
  const result = await client.query({
    query: `SELECT workspace_id AS workspaceId, finding_id AS findingId, lower(hex(trace_id)) AS traceId
            FROM (${tracesQuery(counts, allNumbers(counts), firstDay)})
            WHERE has_finding AND is_large = {isLarge: Bool}
            ORDER BY cityHash64(seed, 'read') LIMIT {limit: UInt32}`,
    query_params: { isLarge, limit },
    format: 'JSONEachRow',
  })
  return result.json<TraceTarget>()
}

/** Measures reads of these traces. Throws if a response is not the whole trace. */
export async function measureReads(
  { reader, client, pids }: ReadDeps,
  targets: readonly TraceTarget[],
  isLarge: boolean,
  { rounds, perRound }: ReadPlan,
): Promise<MeasuredReads> {
  const targetOf = (i: number) => targets[i % targets.length] as TraceTarget
  for (let i = 0; i < perRound / 2; i++) assertWhole(await reader.read(targetOf(i)), isLarge)

  const meter = meterProcesses(pids)
  const rowsBefore = await countRowsRead(client)
  meter.begin()
  const latencies: number[][] = []
  let answerBytes = 0
  for (let round = 0; round < rounds; round++) {
    latencies.push(
      await timeEach(perRound, async i => {
        answerBytes += await reader.receive(targetOf(round * perRound + i))
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

function assertWhole(body: string, isLarge: boolean): void {
  const { spans, truncated } = JSON.parse(body) as Trace
  if (spans.length !== spansOf(isLarge) || truncated)
    throw new Error(`the API returned ${spans.length} spans instead of ${spansOf(isLarge)}`)
}
