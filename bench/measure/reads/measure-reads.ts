import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectTraceColumns } from '../../../clickhouse/queries/traces/select-trace-columns.ts'
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
import type { BareQueries } from './bare-queries.ts'
import { countRowsRead, type ReadPlan, timeEach } from './measure-gets.ts'

/** Cost of sequential reads of traces of one size. */
export interface MeasuredReads {
  readonly p50Ms: readonly number[]
  readonly p99Ms: readonly number[]
  /** p50 of the product's query alone, sent from this process. Its rows are parsed and not used. */
  readonly queryP50Ms: number
  /** Time of the same queries as ClickHouse counts it. */
  readonly queryServerMs: number
  readonly granules: number
  /** Rows read by all queries of a read through the API. */
  readonly rows: number
  /** CPU time by process per read through the API: both queries and all other work. */
  readonly cpuMs: Readonly<Record<string, number>>
  readonly answerBytes: number
}

/** The API, ClickHouse with and without the official client, and their processes. */
export interface ReadDeps {
  readonly reader: TraceReader
  readonly client: ClickHouseClient
  readonly bare: BareQueries
  /** Pids of the API and ClickHouse. */
  readonly pids: Readonly<Record<string, number>>
}

const MAX_ROWS = 16_001
const QUERY_TIMEOUT_MS = 20_000

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

  const before = await selectEvents(client)
  const queries = await timeEach(perRound, async i => {
    const selection = { texts: 'shown', maxRows: MAX_ROWS } as const
    let count = 0
    await selectTraceColumns(client, targetOf(i), selection, () => count++, AbortSignal.timeout(QUERY_TIMEOUT_MS))
    if (count !== spansOf(isLarge)) {
      throw new Error(`the query returned ${count} rows instead of ${spansOf(isLarge)}`)
    }
  })
  const after = await selectEvents(client)
  return {
    p50Ms: latencies.map(round => percentile(round, 0.5)),
    p99Ms: latencies.map(round => percentile(round, 0.99)),
    queryP50Ms: percentile(queries, 0.5),
    queryServerMs: (after.microseconds - before.microseconds) / perRound / 1_000,
    granules: (after.granules - before.granules) / perRound,
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

/** Returns query time and granules since the server started. Only MergeTree tables have granules. */
async function selectEvents(client: ClickHouseClient): Promise<{ microseconds: number; granules: number }> {
  const result = await client.query({
    query: `SELECT event, value FROM system.events WHERE event IN ('SelectQueryTimeMicroseconds', 'SelectedMarks')`,
    format: 'JSONEachRow',
  })
  const events = new Map((await result.json<{ event: string; value: string }>()).map(row => [row.event, row.value]))
  return {
    microseconds: Number(events.get('SelectQueryTimeMicroseconds') ?? 0),
    granules: Number(events.get('SelectedMarks') ?? 0),
  }
}
