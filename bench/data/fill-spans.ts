import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { fillWithParts, runStatement, storedRows, withPatientClient } from './insert-parts.ts'
import { allNumbers, countTraces, DAYS, PARTS_PER_DAY, slotNumbers, tracesQuery } from './stored-traces.ts'

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
  return withPatientClient(url, async client => {
    const counts = countTraces(spans, days)
    for (const table of ['finding_traces', 'session_traces', 'trace_services'])
      await runStatement(client, `TRUNCATE TABLE ${table}`)
    const slots = Array.from({ length: days * PARTS_PER_DAY }, (_, i) => ({
      day: i % days,
      part: Math.floor(i / days),
    }))
    const statements = slots.map(({ day, part }) =>
      insertSpans(tracesQuery(counts, slotNumbers(counts, day, part), firstDay)),
    )
    await fillWithParts(client, 'spans', statements)
    await runStatement(client, insertFindingTraces(tracesQuery(counts, allNumbers(counts), firstDay)))
    const { rows, parts, bytesPerRow } = await storedRows(client, 'spans')
    return { spans: rows, parts, bytesPerSpan: bytesPerRow, seconds: (performance.now() - startedAt) / 1_000 }
  })
}

/** Adds a few traces of one size. */
export async function addTraces(client: ClickHouseClient, traces: string): Promise<void> {
  for (const query of [insertSpans(traces), insertFindingTraces(traces)]) await runStatement(client, query)
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
      status_code, status_message, attributes, attribute_types, session_id, http_route, http_status_code)
    WITH start + position * 1234567 AS span_start, seed + position AS variety, position % 50 = 49 AS fails,
      ${ROUTES}[variety % 50 + 1] AS route
    SELECT workspace_id, concat('srf_', workspace_id), received_at, service, '2.14.3',
      concat('{"service.name":"', service, '","host.name":"ip-10-12-33-', toString(seed % 200), '","process.pid":31337}'),
      '@opentelemetry/instrumentation-http', '0.205.0', trace_id, reinterpretAsFixedString(sipHash64(seed, position)),
      if(position = 0, toFixedString('', 8), reinterpretAsFixedString(sipHash64(seed, intDiv(position - 1, 4)))),
      257, concat('GET ', route), if(position = 0, 2, 3), span_start, span_start + variety % 200000000,
      if(fails, 2, 0), if(fails, 'the order could not be loaded', ''), attributes, [1, 1, 3, 1], session_id, route, 200
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
