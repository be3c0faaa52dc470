import type { TracesPage } from '../../../schemas/http/traces/search.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { pick, type StoredTrace, workspaceId } from '../../data/stored-traces.ts'
import type { Row } from '../../support/scenario.ts'
import { type CheckedRead, measureCheckedReads } from './checked-reads.ts'
import type { ReadPlan } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'

const WORKSPACE = workspaceId(3)
const FULL_PAGE = 20
/** Different values of one search, so that none is remembered. */
const VALUES = 40

/** Searches the stored traces of one workspace. */
export async function measureTraceSearches(
  deps: ReadDeps,
  traces: readonly StoredTrace[],
  plan: ReadPlan,
): Promise<Row[]> {
  const ofWorkspace = traces.filter(({ workspaceId }) => workspaceId === WORKSPACE)
  return measureCheckedReads(deps, WORKSPACE, searchesOf(pick(ofWorkspace, VALUES)), plan)
}

function searchesOf(traces: readonly StoredTrace[]): CheckedRead[] {
  const at = (i: number) => traces[i % traces.length] as StoredTrace
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
  // The hour in which a trace of a service has its newest span.
  const ofServiceHour = (i: number) => {
    const { service, startMs } = at(i)
    const hour = Math.floor(startMs / HOUR_MS)
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
    search('of a session', i => ({ session: at(i).sessionId }), 1),
    search('frequent attribute', () => ({ attribute: 'server.address=shop.example.com' }), FULL_PAGE),
    search('rare attribute', i => ({ attribute: `url.path=${at(i).path}` }), 1),
    search('missing attribute', i => ({ attribute: `url.path=${at(i).path}-` }), 0),
  ]
}
