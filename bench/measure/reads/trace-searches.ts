import type { TracesPage } from '../../../schemas/http/traces/search.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { workspaceId } from '../../data/stored-traces.ts'
import type { Row } from '../../support/scenario.ts'
import { type CheckedRead, measureCheckedReads } from './checked-reads.ts'
import type { ReadPlan } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'

const WORKSPACE = workspaceId(3)
const HOUR_NANOS = 3_600_000_000_000n
const FULL_PAGE = 20
/** Different values of one search, so that none is remembered. */
const VALUES = 40

/** Searches the stored traces of one workspace. */
export async function measureTraceSearches(deps: ReadDeps, plan: ReadPlan): Promise<Row[]> {
  return measureCheckedReads(deps, WORKSPACE, await searchesOf(deps), plan)
}

/** An hour in which a trace of a service has its newest span. */
interface ServiceHour {
  readonly service: string
  /** Hours since 1970. */
  readonly hour: number
}

async function searchesOf({ client }: ReadDeps): Promise<CheckedRead[]> {
  const select = async <T>(query: string) => (await client.query({ query, format: 'JSONEachRow' })).json<T>()
  const texts = async (value: string) =>
    (
      await select<{ text: string }>(`
        SELECT DISTINCT ${value} AS text FROM spans WHERE workspace_id = '${WORKSPACE}' AND parent_span_id = toFixedString('', 8)
        ORDER BY cityHash64(text) LIMIT ${VALUES}`)
    ).map(({ text }) => text)
  const paths = await texts("attributes['url.path']")
  const sessions = await texts('session_id')
  const hours = await select<ServiceHour>(`
    SELECT DISTINCT toString(service_name) AS service, toUInt32(intDiv(last_start_unix_nano, ${HOUR_NANOS})) AS hour
    FROM trace_services WHERE workspace_id = '${WORKSPACE}' ORDER BY cityHash64(service, hour) LIMIT ${VALUES}`)
  const valueAt = (values: readonly string[], i: number) => values[i % values.length] ?? ''
  const count = (body: string) => (JSON.parse(body) as TracesPage).traces.length
  const search = (name: string, queryOf: (i: number) => Record<string, string>, atLeast: number): CheckedRead => ({
    name: `traces: ${name}`,
    path: i => `/v3/traces?${new URLSearchParams(queryOf(i))}`,
    count,
    atLeast,
  })
  const service = (i: number) => `service-${i % 20}`
  const hour = (i: number) => {
    const to = Date.now() - (48 + (i % 24)) * HOUR_MS
    return { from: new Date(to - HOUR_MS).toISOString(), to: new Date(to).toISOString() }
  }
  const ofServiceHour = (i: number) => {
    const { service, hour } = hours[i % hours.length] as ServiceHour
    const time = (hours: number) => new Date(hours * HOUR_MS).toISOString()
    return { service, from: time(hour), to: time(hour + 1) }
  }
  return [
    search('newest', () => ({}), FULL_PAGE),
    search('of a service', i => ({ service: service(i) }), FULL_PAGE),
    search('of a service, an hour', ofServiceHour, 1),
    search('errors, an hour', i => ({ status: 'ERROR', ...hour(i) }), 0),
    search('by name', i => ({ name: `GET /api/resource-${i % 50}/:id` }), FULL_PAGE),
    search('over 150 ms', () => ({ minDurationMs: '150' }), FULL_PAGE),
    search('with a finding', () => ({ hasFinding: 'true' }), FULL_PAGE),
    search('of a session', i => ({ session: valueAt(sessions, i) }), 1),
    search('frequent attribute', () => ({ attribute: 'server.address=shop.example.com' }), FULL_PAGE),
    search('rare attribute', i => ({ attribute: `url.path=${valueAt(paths, i)}` }), 1),
    search('missing attribute', i => ({ attribute: `url.path=${valueAt(paths, i)}-` }), 0),
  ]
}
