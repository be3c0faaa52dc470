import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { type ClickHouseClient, createClickHouse } from '../clickhouse/client.ts'
import { migrate } from '../clickhouse/migrate.ts'
import { OF_TRACE, SPAN_ROW } from '../clickhouse/queries/span-row.ts'
import { startClickHouse } from '../deploy/local/clickhouse.ts'
import { freePort } from '../deploy/local/ports.ts'
import type { Row, Scenario, ScenarioContext, ScenarioResult } from './support/scenario.ts'

/** Two ways to lay out spans on disk, and what a trace read costs on each. `spans` is the schema's own. */
export const scenario: Scenario = {
  name: 'trace-read',
  question: 'Which ORDER BY of the spans lets a trace be read from the fewest granules, with and without its day?',
  run: context => run(context, context.quick ? 1_000_000 : 20_000_000),
}

const DAYS = 7
const FIRST_DAY = '2026-11-01'
const SPANS_PER_TRACE = 20
const LARGE_TRACE_SPANS = 1_000
const LARGE_TRACES_PER_DAY = 20
const WORKSPACES = 20
const READS_PER_ROUND = 100
const ROUNDS = 5
const DATABASE = 'bench'

/** Every candidate has the columns and the partitions of the schema. */
const CANDIDATES = [
  { table: 'spans', label: 'by trace' },
  { table: 'spans_by_trace_filtered', label: 'by trace, bloom filter on trace_id' },
  { table: 'spans_by_service', label: 'by service and hour, bloom filter on trace_id' },
] as const

async function run(context: ScenarioContext, rows: number): Promise<ScenarioResult> {
  const server = await startClickHouse({ dir: join(context.dir, 'clickhouse'), port: await freePort(), log: () => {} })
  context.onEnd(() => server.stop())
  const connection = { url: server.url, user: 'default', password: '', requestTimeoutMs: 3_600_000 }
  const admin = createClickHouse(connection)
  await migrate(admin, { database: DATABASE, retentionDays: 3_650, logger: pino({ level: 'silent' }) })
  await admin.close()
  const client = createClickHouse({ ...connection, database: DATABASE })
  context.onEnd(() => client.close())
  await createRivals(client)

  const tables: Row[] = []
  for (const candidate of CANDIDATES) tables.push(await fill(client, candidate, rows, context))
  const reads = await measureReads(client, rows, context)
  const version = await client.query({ query: 'SELECT version() AS version', format: 'JSONEachRow' })
  return {
    rows: [...reads, ...tables],
    notes: [
      `${rows} spans in ${DAYS} daily partitions and ${WORKSPACES} workspaces, traces of ${SPANS_PER_TRACE} and ${LARGE_TRACES_PER_DAY * DAYS} of ${LARGE_TRACE_SPANS}; files in the page cache.`,
    ],
    facts: { ClickHouse: (await version.json<{ version: string }>())[0]?.version ?? '' },
  }
}

async function createRivals(client: ClickHouseClient): Promise<void> {
  const hour = 'toStartOfHour(fromUnixTimestamp64Nano(toInt64(start_time_unix_nano)))'
  for (const [table, order] of [
    ['spans_by_trace_filtered', 'workspace_id, trace_id, start_time_unix_nano'],
    ['spans_by_service', `workspace_id, service_name, ${hour}, trace_id`],
  ]) {
    await client.command({
      query: `CREATE TABLE ${table} AS spans ENGINE = MergeTree PARTITION BY toDate(received_at) ORDER BY (${order})`,
    })
    await client.command({
      query: `ALTER TABLE ${table} ADD INDEX by_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1`,
    })
  }
}

interface Candidate {
  readonly table: string
  readonly label: string
}

/** Fills one table day by day in the order of arrival, and waits for its merges. */
async function fill(
  client: ClickHouseClient,
  { table, label }: Candidate,
  rows: number,
  context: ScenarioContext,
): Promise<Row> {
  const started = performance.now()
  const perDay = Math.floor(rows / DAYS / SPANS_PER_TRACE) * SPANS_PER_TRACE
  for (let day = 0; day < DAYS; day++) {
    context.progress(`${label}: day ${day + 1} of ${DAYS}`)
    for (const { first, count, perTrace } of [
      { first: day * perDay, count: perDay, perTrace: SPANS_PER_TRACE },
      // Numbers that no trace of 20 has.
      {
        first: largeTraceFirst(rows, day),
        count: LARGE_TRACES_PER_DAY * LARGE_TRACE_SPANS,
        perTrace: LARGE_TRACE_SPANS,
      },
    ]) {
      await client.command({
        query: `INSERT INTO ${table} (${COLUMNS}) ${generate(day, first, count, perTrace)}`,
        clickhouse_settings: { async_insert: 0, max_insert_threads: '1', max_threads: 1, wait_end_of_query: 1 },
      })
    }
  }
  await settle(client, table)
  const seconds = (performance.now() - started) / 1_000
  const [parts] = await select<{ bytes: string; parts: string }>(
    client,
    `SELECT sum(bytes_on_disk) AS bytes, count() AS parts FROM system.parts
     WHERE active AND database = '${DATABASE}' AND table = '${table}'`,
  )
  return {
    name: `disk, ${label}`,
    unit: 'bytes per span',
    samples: [Number(parts?.bytes) / rows],
    details: { parts: parts?.parts ?? '', 'filled and merged in': `${seconds.toFixed(0)} s` },
  }
}

async function settle(client: ClickHouseClient, table: string): Promise<void> {
  for (;;) {
    const [busy] = await select<{ n: string }>(
      client,
      `SELECT count() AS n FROM system.merges WHERE table = '${table}'`,
    )
    if (Number(busy?.n) === 0) return
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}

const largeTraceFirst = (rows: number, day: number) => (rows + day * LARGE_TRACES_PER_DAY * LARGE_TRACE_SPANS) * 100

const COLUMNS = `workspace_id, surface_id, received_at, trace_id, span_id, parent_span_id, name, kind,
  start_time_unix_nano, end_time_unix_nano, status_code, status_message, service_name, service_version, resource,
  scope_name, attributes, session_id, http_route, http_status_code`

/** Spans by their numbers: the trace is number / perTrace, the time of day grows with the number. */
function generate(day: number, first: number, count: number, perTrace: number): string {
  return `
    WITH intDiv(number, ${perTrace}) AS trace, number % ${perTrace} AS position, cityHash64(number) AS hash,
      toDateTime64('${FIRST_DAY} 00:00:00', 3, 'UTC') + toIntervalDay(${day}) AS midnight,
      midnight + toIntervalMillisecond(intDiv((number - ${first}) * 86399000, ${count})) AS arrival,
      toUInt64(toUnixTimestamp64Milli(arrival)) * 1000000 + hash % 900000000 AS start,
      concat('service-', toString(cityHash64(trace) % 10 + position % 3)) AS service
    SELECT ${workspaceOf('trace')}, concat('srf_', toString(trace % ${WORKSPACES})), arrival,
      sipHash128(trace), reinterpretAsFixedString(cityHash64(trace, position)),
      if(position = 0, toFixedString('', 8), reinterpretAsFixedString(cityHash64(trace, intDiv(position - 1, 4)))),
      concat(['GET', 'POST', 'SELECT'][hash % 3 + 1], ' /things/', toString(hash % 200)), hash % 5 + 1,
      start, start + hash % 50000000, if(hash % 50 = 0, 2, 0), if(hash % 50 = 0, 'connection refused', ''),
      service, '1.4.2', concat('{"service.name":"', service, '","host.name":"node-', toString(trace % 50), '"}'),
      '@opentelemetry/instrumentation-http',
      map('http.request.method', 'GET', 'url.path', concat('/things/', toString(hash % 100000)), 'user.id',
          toString(hash % 1000000), 'server.address', 'api.example.com', 'http.response.status_code', '200',
          'network.peer.address', IPv4NumToString(toUInt32(hash)), 'thread.id', toString(hash % 64)),
      concat('session-', toString(intDiv(trace, 5))), concat('/things/:id/', toString(hash % 40)), 200
    FROM numbers(${first}, ${count})`
}

const workspaceOf = (trace: string) => `concat('ws_', toString(${trace} % ${WORKSPACES}))`

interface Target {
  readonly workspaceId: string
  readonly traceId: string
  readonly day: string
}

/** Traces to read, by chance but the same in every run. */
function pickTraces(client: ClickHouseClient, rows: number, isLarge: boolean): Promise<Target[]> {
  const perDay = isLarge ? LARGE_TRACES_PER_DAY : Math.floor(rows / DAYS / SPANS_PER_TRACE)
  const first = isLarge
    ? `intDiv(${largeTraceFirst(rows, 0)} + dayNumber * ${LARGE_TRACES_PER_DAY * LARGE_TRACE_SPANS * 100}, ${LARGE_TRACE_SPANS})`
    : `dayNumber * ${perDay}`
  return select<Target>(
    client,
    `WITH number % ${DAYS} AS dayNumber, ${first} + cityHash64(number, ${isLarge}) % ${perDay} AS trace
     SELECT ${workspaceOf('trace')} AS workspaceId, lower(hex(sipHash128(trace))) AS traceId,
       toString(toDate('${FIRST_DAY}') + dayNumber) AS day
     FROM numbers(${READS_PER_ROUND * ROUNDS})`,
  )
}

async function measureReads(client: ClickHouseClient, rows: number, context: ScenarioContext): Promise<Row[]> {
  const variants = [
    { spans: SPANS_PER_TRACE, isLarge: false, isDayKnown: true },
    { spans: SPANS_PER_TRACE, isLarge: false, isDayKnown: false },
    { spans: LARGE_TRACE_SPANS, isLarge: true, isDayKnown: false },
  ].flatMap(variant => CANDIDATES.map(candidate => ({ ...variant, ...candidate })))
  const results = variants.map(() => ({ p50: [] as number[], all: [] as number[], rows: [] as number[] }))
  const targets = { small: await pickTraces(client, rows, false), large: await pickTraces(client, rows, true) }

  for (let round = 0; round < ROUNDS; round++) {
    context.progress(`reads: round ${round + 1} of ${ROUNDS}`)
    for (const [i, variant] of variants.entries()) {
      const latencies: number[] = []
      const from = round * READS_PER_ROUND
      const asked = (variant.isLarge ? targets.large : targets.small).slice(from, from + READS_PER_ROUND)
      for (const target of asked) {
        const started = performance.now()
        const read = await readTrace(client, variant.table, target, variant.isDayKnown)
        latencies.push(performance.now() - started)
        results[i]?.rows.push(read.readRows)
        if (read.spans !== variant.spans) throw new Error(`${read.spans} spans read of ${variant.spans}`)
      }
      results[i]?.p50.push(percentile(latencies, 0.5))
      results[i]?.all.push(...latencies)
    }
  }
  return variants.map((variant, i) => {
    const result = results[i] ?? { p50: [], all: [], rows: [] }
    const question = `${variant.spans} spans, ${variant.isDayKnown ? 'day known' : 'any day'}`
    return {
      name: `${question}, ${variant.label}`,
      unit: 'ms, median',
      samples: result.p50,
      ...(variant.table === 'spans' ? {} : { ratios: [{ to: `${question}, ${CANDIDATES[0].label}` }] }),
      details: {
        p99: `${percentile(result.all, 0.99).toFixed(1)} ms`,
        'rows read, median': String(percentile(result.rows, 0.5)),
        'granules of 8192, about': (percentile(result.rows, 0.5) / 8192).toFixed(1),
      },
    }
  })
}

/** The query of the API on a table of our choice. */
async function readTrace(
  client: ClickHouseClient,
  table: string,
  { day, ...key }: Target,
  isDayKnown: boolean,
): Promise<{ spans: number; readRows: number }> {
  const result = await client.query({
    query: `SELECT ${SPAN_ROW} FROM ${table} WHERE ${OF_TRACE}
            ${isDayKnown ? 'AND toDate(received_at) = {day: Date}' : ''} LIMIT 5001`,
    query_params: { ...key, day },
    format: 'JSONEachRow',
    clickhouse_settings: { wait_end_of_query: 1 },
  })
  const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary'])) as { read_rows: string }
  return { spans: (await result.json()).length, readRows: Number(summary.read_rows) }
}

async function select<T>(client: ClickHouseClient, query: string): Promise<T[]> {
  return (await client.query({ query, format: 'JSONEachRow' })).json<T>()
}

function percentile(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? 0
}

/** `node --import tsx bench/trace-read.ts [--rows N]`: this scenario alone, at a size of one's own. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { mkdtemp, rm } = await import('node:fs/promises')
  const { values } = parseArgs({ options: { rows: { type: 'string', default: '20000000' } } })
  const dir = await mkdtemp(join(process.cwd(), '.local-bench-'))
  const steps: (() => Promise<void> | void)[] = [() => rm(dir, { recursive: true, force: true })]
  const write = (text: string) => process.stdout.write(`${text}\n`)
  try {
    const context = {
      quick: false,
      dir,
      progress: write,
      onEnd: (step: () => Promise<void> | void) => void steps.push(step),
    }
    write(JSON.stringify(await run(context, Number(values.rows)), null, 2))
  } finally {
    for (const step of steps.reverse()) await step()
  }
}
