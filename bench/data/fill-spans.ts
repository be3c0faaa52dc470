import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { BENCH_DATABASE } from '../services/start-stores.ts'
import { allNumbers, countTraces, DAYS, PARTS_PER_DAY, slotNumbers, tracesQuery } from './stored-traces.ts'

/** Concurrent inserts. Each needs a core, and 0.4 GB of memory for a part of the largest size. */
const INSERTS_AT_ONCE = 2
const TIMEOUT_MS = 300_000

/** Result of filling a table. */
export interface Filled {
  readonly spans: number
  readonly parts: number
  readonly bytesPerSpan: number
  readonly seconds: number
}

/**
 * Fills the emptied table `spans` with about this many rows, as merges would leave them: several parts a day, each in the
 * order of the key and over the whole key space. Rows are generated in that order, so that nothing is sorted or merged.
 * Merges stay stopped.
 */
export async function fillSpans(url: string, spans: number, firstDay: string, days: number = DAYS): Promise<Filled> {
  const startedAt = performance.now()
  const client = createClickHouse({
    url,
    database: BENCH_DATABASE,
    requestTimeoutMs: TIMEOUT_MS,
  })
  try {
    const counts = countTraces(spans, days)
    await command(client, 'SYSTEM STOP MERGES spans')
    await command(client, 'TRUNCATE TABLE spans')
    for (const table of ['finding_traces', 'session_traces', 'trace_services'])
      await command(client, `TRUNCATE TABLE ${table}`)
    // Merged parts are wide if they are large enough, so these inserted parts are wide too.
    await command(client, 'ALTER TABLE spans MODIFY SETTING min_level_for_wide_part = 0')
    const slots = Array.from({ length: days * PARTS_PER_DAY }, (_, i) => ({
      day: i % days,
      part: Math.floor(i / days),
    }))
    await Promise.all(
      Array.from({ length: INSERTS_AT_ONCE }, async () => {
        for (let slot = slots.shift(); slot; slot = slots.shift()) {
          await command(client, insertSpans(tracesQuery(counts, slotNumbers(counts, slot.day, slot.part), firstDay)))
        }
      }),
    )
    await command(client, 'ALTER TABLE spans MODIFY SETTING min_level_for_wide_part = 1')
    await command(client, insertFindingTraces(tracesQuery(counts, allNumbers(counts), firstDay)))
    return { ...(await stateOfSpans(client)), seconds: (performance.now() - startedAt) / 1_000 }
  } finally {
    await client.close()
  }
}

/** Adds a few traces of one size. */
export async function addTraces(client: ClickHouseClient, traces: string): Promise<void> {
  for (const query of [insertSpans(traces), insertFindingTraces(traces)]) await command(client, query)
}

async function command(client: ClickHouseClient, query: string): Promise<void> {
  await client.command({
    query,
    clickhouse_settings: {
      wait_end_of_query: 1,
      max_threads: 1,
      max_insert_threads: '1',
      max_block_size: '4096',
      // All rows of an insert form one part.
      min_insert_block_size_rows: '1000000000',
      min_insert_block_size_bytes: '0',
      insert_deduplicate: 0,
    },
    abort_signal: AbortSignal.timeout(TIMEOUT_MS),
  })
}

async function stateOfSpans(client: ClickHouseClient): Promise<Omit<Filled, 'seconds'>> {
  const result = await client.query({
    query: `SELECT sum(rows) AS spans, count() AS parts, sum(bytes_on_disk) / spans AS bytesPerSpan
            FROM system.parts WHERE active AND database = {database: String} AND table = 'spans'`,
    query_params: { database: BENCH_DATABASE },
    format: 'JSONEachRow',
  })
  const [row] = await result.json<Record<'spans' | 'parts' | 'bytesPerSpan', string>>()
  return { spans: Number(row?.spans), parts: Number(row?.parts), bytesPerSpan: Number(row?.bytesPerSpan) }
}

const ROUTES = "arrayMap(i -> concat('/api/resource-', toString(i), '/:id'), range(50))"

/**
 * Returns an INSERT of traces: trees with four children a span, whose spans start 1.2 ms apart. Values of a trace are
 * computed once per trace.
 */
function insertSpans(traces: string): string {
  return `
    INSERT INTO spans (workspace_id, surface_id, received_at, service_name, service_version, resource, scope_name,
      scope_version, trace_id, span_id, parent_span_id, flags, name, kind, start_time_unix_nano, end_time_unix_nano,
      status_code, status_message, attributes, attribute_types, session_id, http_route, http_status_code, finding_ids)
    WITH start + position * 1234567 AS span_start, seed + position AS variety, position % 50 = 49 AS fails,
      ${ROUTES}[variety % 50 + 1] AS route
    SELECT workspace_id, concat('srf_', workspace_id), received_at, service, '2.14.3',
      concat('{"service.name":"', service, '","host.name":"ip-10-12-33-', toString(seed % 200), '","process.pid":31337}'),
      '@opentelemetry/instrumentation-http', '0.205.0', trace_id, reinterpretAsFixedString(sipHash64(seed, position)),
      if(position = 0, toFixedString('', 8), reinterpretAsFixedString(sipHash64(seed, intDiv(position - 1, 4)))),
      257, concat('GET ', route), if(position = 0, 2, 3), span_start, span_start + variety % 200000000,
      if(fails, 2, 0), if(fails, 'the order could not be loaded', ''), attributes, [1, 1, 3, 1], session_id, route, 200,
      if(position = 0 AND has_finding, toString(finding_id), '')
    FROM (
      SELECT *, toUInt64(toUnixTimestamp64Milli(received_at)) * 1000000 AS start,
        concat('service-', toString(seed % 20)) AS service, concat('session-', hex(seed)) AS session_id,
        map('http.request.method', 'GET', 'url.path', concat('/api/', toString(seed % 1000000)),
          'http.response.status_code', '200', 'server.address', 'shop.example.com') AS attributes
      FROM (${traces}))
    ARRAY JOIN range(spans) AS position`
}

const insertFindingTraces = (traces: string) => `
  INSERT INTO finding_traces (day, workspace_id, finding_id, trace_id, last_seen_unix_nano, occurrence_count)
  SELECT day, workspace_id, finding_id, trace_id, toUnixTimestamp64Nano(toDateTime64(received_at, 9)), 1
  FROM (${traces}) WHERE has_finding`
