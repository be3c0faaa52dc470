import type { TracesPage } from '../../../schemas/http/traces/search.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { workspaceId } from '../../data/stored-traces.ts'
import type { Row } from '../../support/scenario.ts'
import { type Get, measureGets, type ReadPlan } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'
import { newestTraces, totalsOfTraces, tracesWithAttribute } from './trace-queries.ts'

const WORKSPACE = workspaceId(3)
const HOUR_NANOS = 3_600_000_000_000n
const FULL_PAGE = 20
/** Different values of one search, so that none is remembered. */
const VALUES = 40

/** Searches the stored traces of one workspace. */
export async function measureTraceSearches(deps: ReadDeps, plan: ReadPlan): Promise<Row[]> {
  const rows: Row[] = []
  for (const get of await getsOf(deps)) rows.push(...(await measureGets(deps.client, get, plan)))
  return rows
}

/** An hour in which a trace of a service has its newest span. */
interface ServiceHour {
  readonly service: string
  /** Hours since 1970. */
  readonly hour: number
}

async function getsOf({ reader, client, bare }: ReadDeps): Promise<Get[]> {
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
  const search = (name: string, queryOf: (i: number) => Record<string, string>, atLeast: number): Get => ({
    name: `traces: ${name}`,
    get: async i => {
      const body = await reader.get(WORKSPACE, `/v3/traces?${new URLSearchParams(queryOf(i))}`)
      const found = count(body)
      if (found < atLeast) throw new Error(`${name} returned ${found} traces instead of ${atLeast}`)
      return body
    },
  })
  const besideAlone = (get: Get, candidates: (i: number) => string): Get => ({
    ...get,
    count,
    alone: i => bare.countRows(totalsOfTraces(WORKSPACE, candidates(i))),
  })
  const service = (i: number) => `service-${i % 20}`
  const hour = (i: number) => {
    const to = Date.now() - (48 + (i % 24)) * HOUR_MS
    return { from: new Date(to - HOUR_MS).toISOString(), to: new Date(to).toISOString() }
  }
  const serviceHour = (i: number) => hours[i % hours.length] as ServiceHour
  const ofServiceHour = (i: number) => {
    const { service, hour } = serviceHour(i)
    const time = (hours: number) => new Date(hours * HOUR_MS).toISOString()
    return { service, from: time(hour), to: time(hour + 1) }
  }
  return [
    besideAlone(
      search('newest', () => ({}), FULL_PAGE),
      () =>
        newestTraces(WORKSPACE, FULL_PAGE, `last_start_unix_nano >= ${BigInt(Date.now() - 24 * HOUR_MS) * 1_000_000n}`),
    ),
    search('of a service', i => ({ service: service(i) }), FULL_PAGE),
    besideAlone(search('of a service, an hour', ofServiceHour, 1), i => {
      const { service, hour } = serviceHour(i)
      const [from, to] = [BigInt(hour) * HOUR_NANOS, BigInt(hour + 1) * HOUR_NANOS]
      return newestTraces(
        WORKSPACE,
        FULL_PAGE,
        `service_name = '${service}' AND last_start_unix_nano >= ${from} AND last_start_unix_nano < ${to}`,
      )
    }),
    search('errors, an hour', i => ({ status: 'ERROR', ...hour(i) }), 0),
    search('by name', i => ({ name: `GET /api/resource-${i % 50}/:id` }), FULL_PAGE),
    search('over 150 ms', () => ({ minDurationMs: '150' }), FULL_PAGE),
    search('with a finding', () => ({ hasFinding: 'true' }), FULL_PAGE),
    search('of a session', i => ({ session: valueAt(sessions, i) }), 1),
    search('frequent attribute', () => ({ attribute: 'server.address=shop.example.com' }), FULL_PAGE),
    besideAlone(
      search('rare attribute', i => ({ attribute: `url.path=${valueAt(paths, i)}` }), 1),
      i => tracesWithAttribute(WORKSPACE, FULL_PAGE, 'url.path', valueAt(paths, i)),
    ),
    search('missing attribute', i => ({ attribute: `url.path=${valueAt(paths, i)}-` }), 0),
  ]
}
