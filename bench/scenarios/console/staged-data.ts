import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import type { LocalCredentials } from '../../../deploy/local/start.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { failedOrder, newTraceId, send, traceExport } from '../../../test/support/console/staged-telemetry.ts'
import { pollUntil } from '../../support/poll-until.ts'

const DEADLINE_MS = 60_000
const CHILDREN = 7
/** Occurrences of each finding, over the last 24 hours. */
const OCCURRENCES = 5

/** Data of the workspace whose console is measured. */
export interface StagedData {
  /** Stores a trace with this many spans, and returns its id. */
  addTrace(spans: number): Promise<string>
  addFindings(count: number): Promise<void>
  close(): Promise<void>
}

/** Connects to the ClickHouse of an installation, once a request has shown which workspace its console reads. */
export async function stageData(credentials: LocalCredentials): Promise<StagedData> {
  const client = createClickHouse({
    url: credentials.clickhouseUrl,
    database: 'penstock',
    requestTimeoutMs: 120_000,
  })
  await send(credentials, 'traces', traceExport(newTraceId(), Date.now(), failedOrder('session')))
  let workspaceId = ''
  await pollUntil('the first trace is stored', DEADLINE_MS, async () => {
    const result = await client.query({ query: 'SELECT any(workspace_id) AS id FROM spans', format: 'JSONEachRow' })
    const [row] = await result.json<{ id: string }>()
    workspaceId = row?.id ?? ''
    return workspaceId !== ''
  })
  const access = { workspaceId, surfaceId: credentials.surfaceId }
  return {
    async addTrace(spans) {
      const traceId = newTraceId()
      const startNanos = String(BigInt(Date.now() - 60_000) * 1_000_000n)
      await insert(client, traceOf(), { ...access, traceId, spans, startNanos })
      return traceId
    },
    addFindings: count => insert(client, findingsOf(), { ...access, count, fromMs: Date.now() - DAY_MS }),
    close: () => client.close(),
  }
}

async function insert(client: ClickHouseClient, query: string, query_params: Record<string, unknown>): Promise<void> {
  await client.command({ query, query_params, clickhouse_settings: { wait_end_of_query: 1, async_insert: 0 } })
}

/** A tree with seven children a span, whose spans start 10 µs apart. Every fiftieth fails. */
const traceOf = () => `
  INSERT INTO spans (workspace_id, surface_id, received_at, service_name, service_version, resource, trace_id, span_id,
    parent_span_id, flags, name, kind, start_time_unix_nano, end_time_unix_nano, status_code)
  WITH {startNanos: UInt64} + number * 10000 AS start, intDiv(number - 1, ${CHILDREN}) + 1 AS parent
  SELECT {workspaceId: String}, {surfaceId: String}, now64(3), concat('service ', toString(number % 9)), '1.4.2', '{}',
    toFixedString(unhex({traceId: String}), 16), reinterpretAsFixedString(toUInt64(number + 1)),
    if(number = 0, toFixedString('', 8), reinterpretAsFixedString(toUInt64(parent))), 257,
    concat('operation ', toString(number % 500)), 3, start, start + 5000000, if(number % 50 = 49, 2, 0)
  FROM numbers({spans: UInt64})`

const findingsOf = () => `
  INSERT INTO exceptions (workspace_id, surface_id, received_at, stored_at, finding_id, trace_id, span_id,
    occurred_at_unix_nano, service_name, service_version, session_id, source, type, message, stacktrace)
  WITH number % {count: UInt32} AS finding
  SELECT {workspaceId: String}, {surfaceId: String},
    fromUnixTimestamp64Milli(toInt64({fromMs: UInt64} + intDiv(number * ${DAY_MS}, {count: UInt32} * ${OCCURRENCES}))) AS at,
    at + toIntervalMillisecond(500), concat('fnd_', translate(leftPad(toString(finding), 26, 'a'), '0189', 'wxyz')),
    reinterpretAsFixedString(sipHash128(number)), reinterpretAsFixedString(toUInt64(number + 1)),
    toUnixTimestamp64Nano(toDateTime64(at, 9)), concat('service ', toString(finding % 9)), '1.4.2', '', 'span_event',
    'OrderError', concat('cannot read property ', toString(finding)), ''
  FROM numbers({count: UInt32} * ${OCCURRENCES})`
