import type { TracesPage } from '../../../schemas/http/traces/search.ts'
import { workspaceId } from '../../data/stored-traces.ts'
import type { Row } from '../../support/scenario.ts'
import { type Get, measureGets, type ReadPlan } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'

const WORKSPACE = workspaceId(3)
const HOUR_MS = 3_600_000
const FULL_PAGE = 20
/** Different values of one search, so that none is remembered. */
const VALUES = 40

/** Searches the stored traces of one workspace. */
export async function measureTraceSearches(deps: ReadDeps, plan: ReadPlan): Promise<Row[]> {
  const rows: Row[] = []
  for (const get of await getsOf(deps)) rows.push(...(await measureGets(deps.client, get, plan)))
  return rows
}

async function getsOf({ reader, client }: ReadDeps): Promise<Get[]> {
  const select = async (value: string) =>
    (
      await (
        await client.query({
          query: `SELECT DISTINCT ${value} AS text FROM spans WHERE workspace_id = '${WORKSPACE}' AND parent_span_id = toFixedString('', 8)
                  ORDER BY cityHash64(text) LIMIT ${VALUES}`,
          format: 'JSONEachRow',
        })
      ).json<{ text: string }>()
    ).map(({ text }) => text)
  const paths = await select("attributes['url.path']")
  const sessions = await select('session_id')
  const valueAt = (values: readonly string[], i: number) => values[i % values.length] ?? ''
  const search = (name: string, queryOf: (i: number) => Record<string, string>, atLeast: number): Get => ({
    name: `traces: ${name}`,
    get: async i => {
      const body = await reader.get(WORKSPACE, `/v3/traces?${new URLSearchParams(queryOf(i))}`)
      const { length } = (JSON.parse(body) as TracesPage).traces
      if (length < atLeast) throw new Error(`${name} returned ${length} traces instead of ${atLeast}`)
      return body
    },
  })
  const service = (i: number) => `service-${i % 20}`
  const hour = (i: number) => {
    const to = Date.now() - (48 + (i % 24)) * HOUR_MS
    return { from: new Date(to - HOUR_MS).toISOString(), to: new Date(to).toISOString() }
  }
  return [
    search('newest', () => ({}), FULL_PAGE),
    search('of a service', i => ({ service: service(i) }), FULL_PAGE),
    search('of a service, an hour', i => ({ service: service(i), ...hour(i) }), 0),
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
