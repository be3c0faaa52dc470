import { join } from 'node:path'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { runStatement, runStatements, type StoredRows, storedRows, withPatientClient } from './insert-parts.ts'
import { workspaceId } from './stored-traces.ts'

/** Workspace of all spans. */
export const TRACEGEN_WORKSPACE = workspaceId(0)
/** Days with spans. */
export const TRACEGEN_DAYS = 10
/** Spans of a trace: one parent and its children. */
export const TRACEGEN_SPANS = 10
/** Number of services, each with a tenth of the traces. */
export const TRACEGEN_SERVICES = 10

const ATTRIBUTES = 11
const KEYS = 97
const VALUES = 1_000
/** From the start of a trace to that of the next one, and from a child to the next one: both sleep for a microsecond at least. */
const TRACE_NANOS = 800_000
const CHILD_NANOS = 75_000
/** Traces of an insert. Their spans are as many as a worker inserts at once. */
const TRACES_PER_INSERT = 10_000

/** Result of filling. */
export interface FilledTracegen extends StoredRows {
  /** Spans a second of each insert from a file. */
  readonly insertRates: readonly number[]
  /** Bytes of the rows that the view adds for lists of traces, a span. */
  readonly listBytesPerSpan: number
}

/** As in the inserts of a worker (clickhouse/client.ts): merges build this index. */
const AS_A_WORKER = { exclude_materialize_skip_indexes_on_insert: 'by_attribute' } as const

/**
 * Stores what `tracegen -spans 9 -services 10` of Jaeger sends, a tenth of it on each of ten days: internal/tracegen of
 * jaegertracing/jaeger with its defaults, and the days of setup/native/run_tracegen.sh of mahadzaryab1/clickhouse-benchmarking.
 * The first day is inserted from files, to measure the inserts. Merges run, and past days are merged into one part at the end,
 * as the tables are set to after a day (migration 0019).
 */
export async function fillTracegen(url: string, dir: string, traces: number, endMs: number): Promise<FilledTracegen> {
  const perDay = Math.floor(traces / TRACEGEN_DAYS)
  const blocksOf = (day: number) =>
    Array.from({ length: Math.ceil(perDay / TRACES_PER_INSERT) }, (_, block) =>
      spansQuery({
        day,
        first: block * TRACES_PER_INSERT,
        count: Math.min(perDay - block * TRACES_PER_INSERT, TRACES_PER_INSERT),
        beganMs: endMs - (TRACEGEN_DAYS - 1 - day) * DAY_MS - Math.ceil((perDay * TRACE_NANOS) / 1e6),
      }),
    )
  return withPatientClient(url, async client => {
    const insertRates: number[] = []
    const file = join(dir, 'tracegen.native')
    for (const spans of blocksOf(0)) insertRates.push(await insertFromFile(client, file, spans))
    const others = Array.from({ length: TRACEGEN_DAYS - 1 }, (_, i) => blocksOf(i + 1)).flat()
    await runStatements(
      client,
      others.map(spans => `INSERT INTO spans (${COLUMNS}) ${spans}`),
      AS_A_WORKER,
    )
    await mergePastDays(client)
    const stored = await storedRows(client, 'spans')
    const lists = await storedRows(client, 'trace_services')
    return { ...stored, insertRates, listBytesPerSpan: (lists.bytesPerRow * lists.rows) / stored.rows }
  })
}

/** Writes a block to a file and inserts it. Returns the spans a second of the insert. */
async function insertFromFile(client: ClickHouseClient, file: string, spans: string): Promise<number> {
  const source = `file('${file}', 'Native')`
  await runStatement(client, `INSERT INTO FUNCTION ${source} ${spans}`, { engine_file_truncate_on_insert: 1 })
  const [row] = await (
    await client.query({ query: `SELECT count() AS spans FROM ${source}`, format: 'JSONEachRow' })
  ).json<{ spans: string }>()
  const startedAt = performance.now()
  await runStatement(client, `INSERT INTO spans (${COLUMNS}) SELECT * FROM ${source}`, AS_A_WORKER)
  return Number(row?.spans) / ((performance.now() - startedAt) / 1_000)
}

async function mergePastDays(client: ClickHouseClient): Promise<void> {
  const result = await client.query({
    query: `SELECT DISTINCT partition FROM system.parts
            WHERE active AND database = currentDatabase() AND table = 'spans' AND partition < toString(today()) ORDER BY partition`,
    format: 'JSONEachRow',
  })
  const days = await result.json<{ partition: string }>()
  await runStatements(
    client,
    days.map(({ partition }) => `OPTIMIZE TABLE spans PARTITION '${partition}' FINAL`),
  )
}

/** Traces of a day that follow one another. */
interface Block {
  readonly day: number
  readonly first: number
  readonly count: number
  /** Start of the first trace of the day. */
  readonly beganMs: number
}

const COLUMNS = `workspace_id, surface_id, received_at, service_name, resource, scope_name, trace_id, span_id, parent_span_id, flags,
  name, kind, start_time_unix_nano, end_time_unix_nano, attributes, attribute_types`

/** Returns a query of the spans of a block. Attributes of children count on from span to span, and begin again every day. */
function spansQuery({ day, first, count, beganMs }: Block): string {
  return `
    WITH position = 0 AS isParent, (trace * ${TRACEGEN_SPANS - 1} + position - 1) * ${ATTRIBUTES} AS attribute,
      start + if(isParent, 0, (position - 1) * ${CHILD_NANOS} + seed % 9973) AS span_start
    SELECT '${TRACEGEN_WORKSPACE}' AS workspace_id, 'srf_tracegen' AS surface_id,
      fromUnixTimestamp64Milli(toInt64(intDiv(start, 1000000) + 2000), 'UTC') AS received_at, service AS service_name,
      concat('{"service.name":"', service, '","telemetry.sdk.language":"go","telemetry.sdk.name":"opentelemetry",',
        '"telemetry.sdk.version":"1.39.0"}') AS resource, service AS scope_name,
      reinterpretAsFixedString(sipHash128(${day}, trace)) AS trace_id,
      reinterpretAsFixedString(sipHash64(${day}, trace, position)) AS span_id,
      if(isParent, toFixedString('', 8), reinterpretAsFixedString(sipHash64(${day}, trace, 0))) AS parent_span_id,
      257 AS flags, if(isParent, 'lets-go', concat('child-span-', leftPad(toString(position - 1), 2, '0'))) AS name,
      if(isParent, 2, 3) AS kind, span_start AS start_time_unix_nano,
      span_start + if(isParent, ${TRACEGEN_SPANS - 1} * ${CHILD_NANOS} + seed % 19997, 55000 + seed % 9001) AS end_time_unix_nano,
      if(isParent, map('peer.service', 'tracegen-server', 'peer.host.ipv4', '1.1.1.1'),
        mapFromArrays(
          arrayMap(i -> printf('attr_%02d', (attribute + i) % ${KEYS}), range(${ATTRIBUTES})),
          arrayMap(i -> printf('val_%02d', (attribute + i) % ${VALUES}), range(${ATTRIBUTES}))))
        AS attributes,
      arrayResize([1], length(attributes), 1) AS attribute_types
    FROM (
      SELECT number + ${first} AS trace, arrayJoin(range(${TRACEGEN_SPANS})) AS position, sipHash64(${day}, trace, position, 1) AS seed,
        toUInt64(${BigInt(beganMs) * 1_000_000n} + trace * ${TRACE_NANOS}) AS start,
        concat('tracegen-', leftPad(toString(trace % ${TRACEGEN_SERVICES}), 2, '0')) AS service
      FROM numbers(${count}))`
}
