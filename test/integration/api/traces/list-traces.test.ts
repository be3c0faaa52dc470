import { describe, expect, it } from 'vitest'
import { readTracesPage } from '../../../../api/traces/search/list-traces.ts'
import { createClickHouse } from '../../../../clickhouse/client.ts'
import { listTracesQuerySchema } from '../../../../schemas/http/traces/search.ts'
import { DAY_MS, HOUR_MS } from '../../../../schemas/units.ts'
import { FairSlots } from '../../../../shared/concurrency/fair-slots.ts'
import { isCluster } from '../../../support/cluster/connect.ts'
import { insertExceptions } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { client, DATABASE, FINDING, id } from './fixture.ts'
import { ago, idsOf, MS, newWorkspace } from './list-fixture.ts'

const url = sharedServices().clickhouseUrl

it.skipIf(isCluster(url))(
  'refuses a search that reads more than it may, and names the parameters that narrow it',
  async () => {
    const { store, workspaceId } = await newWorkspace()
    await store([{ spanId: id(1), name: 'read' }])
    const deps = { clickhouse: client, traceSearches: new FairSlots({ slots: 1, waiting: 1 }), now: Date.now }
    const request = {
      ...{ workspaceId, deadline: AbortSignal.timeout(30_000) },
      query: listTracesQuerySchema.parse({ name: 'read' }),
    }
    expect(await readTracesPage(deps, request)).toMatchObject({ ok: true, value: { traces: [{}] } })
    const clickhouse = createClickHouse({ url, database: DATABASE, settings: { max_rows_to_read: '1' } })
    const refused = await readTracesPage({ ...deps, clickhouse }, request)
    await clickhouse.close()
    expect(refused).toMatchObject({
      ...{ ok: false, problem: { code: 'REQUEST_INVALID', message: expect.stringContaining('by "from" and "to"') } },
    })
  },
)

describe('GET /v3/traces', () => {
  it('shows the newest traces first, with what all of their spans add up to', async () => {
    const { store, list } = await newWorkspace()
    const older = await store([{ ...ago(60_000, 20), serviceName: 'web', name: 'GET /' }])
    const start = BigInt(Date.now() - 30_000) * MS
    const newer = await store([
      { startTimeUnixNano: start + 5n * MS, endTimeUnixNano: start + 90n * MS, statusCode: 2, parentSpanId: id(2) },
      {
        startTimeUnixNano: start,
        endTimeUnixNano: start + 40n * MS,
        serviceName: 'web',
        name: 'GET /cart',
        httpRoute: '/cart',
        httpStatusCode: 500,
      },
      { startTimeUnixNano: start + 6n * MS, endTimeUnixNano: start, parentSpanId: id(1), serviceName: 'db' },
    ])
    await store([{ startTimeUnixNano: start + 5n * MS, endTimeUnixNano: start + 90n * MS, statusCode: 2 }], newer)
    expect(await list()).toEqual({
      traces: [
        {
          traceId: newer,
          firstSpan: { spanId: id(2), name: 'GET /cart', serviceName: 'web', httpRoute: '/cart', httpStatusCode: 500 },
          startedAtUnixNano: String(start),
          endedAtUnixNano: String(start + 90n * MS),
          wallDurationMs: 90,
          spanCount: 3,
          errorCount: 1,
          services: ['db', 'shop', 'web'],
          serviceCount: 3,
        },
        expect.objectContaining({ traceId: older, wallDurationMs: 20, spanCount: 1, services: ['web'] }),
      ],
      nextCursor: null,
    })
  })

  it('shows the first span of a trace whose root is not retained, with its parent', async () => {
    const { store, list } = await newWorkspace()
    await store([
      { ...ago(1_000), parentSpanId: id(8), name: 'second' },
      { ...ago(2_000), parentSpanId: id(9), name: 'first' },
    ])
    expect((await list()).traces[0]?.firstSpan).toEqual({
      spanId: id(2),
      parentSpanId: id(9),
      name: 'first',
      serviceName: 'shop',
    })
  })

  it('finds traces by each filter, and by several if one span matches them all', async () => {
    const { store, list, workspaceId } = await newWorkspace()
    const slow = await store([
      { ...ago(5_000, 2_000), serviceName: 'api', name: 'checkout' },
      { ...ago(4_000), serviceName: 'db', name: 'select', statusCode: 2 },
    ])
    const quick = await store([
      { ...ago(3_000, 3), serviceName: 'api', name: 'checkout', statusCode: 1, sessionId: 'session-1' },
    ])
    const other = await store([{ ...ago(2_000, 5), serviceName: '', name: 'poll' }])
    await insertExceptions(client, [{ workspaceId, findingId: FINDING, traceId: other }])
    const found = async (query: Record<string, string>) => idsOf(await list(query))
    expect(await found({})).toEqual([other, quick, slow])
    expect(await found({ service: 'api' })).toEqual([quick, slow])
    expect(await found({ service: '' })).toEqual([other])
    expect(await found({ name: 'select' })).toEqual([slow])
    expect(await found({ name: 'sele' })).toEqual([])
    expect(await found({ status: 'ERROR' })).toEqual([slow])
    expect(await found({ status: 'OK' })).toEqual([quick])
    expect(await found({ minDurationMs: '3' })).toEqual([other, quick, slow])
    expect(await found({ minDurationMs: '4' })).toEqual([other, slow])
    expect(await found({ session: 'session-1' })).toEqual([quick])
    expect(await found({ hasFinding: 'true' })).toEqual([other])
    expect(await found({ service: 'api', minDurationMs: '4' })).toEqual([slow])
    // The service, the name and the error are of two spans.
    expect(await found({ service: 'api', status: 'ERROR' })).toEqual([])
    expect(await found({ name: 'checkout', status: 'ERROR' })).toEqual([])
    expect(await found({ service: 'db', name: 'select', status: 'ERROR' })).toEqual([slow])
  })

  it('shows each trace once over the pages, also if it was stored in parts or at the same time as others', async () => {
    const { store, list } = await newWorkspace()
    const stored: string[] = []
    const same = ago(90_000)
    for (let i = 0; i < 4; i++) stored.push(await store([{ ...same, serviceName: i % 2 ? 'a' : 'b' }]))
    for (let i = 0; i < 3; i++) stored.push(await store([ago(80_000 - i)]))
    // The newest and the oldest have a part among the others, and one that arrived hours after the first.
    await store([{ spanId: id(7), ...ago(1_000), serviceName: 'c' }], stored[0])
    await store([{ spanId: id(8), ...ago(3 * HOUR_MS) }], stored[5])
    const seen: string[] = []
    let cursor: string | null | undefined
    do {
      const page = await list({ limit: '2', ...(cursor && { cursor }) })
      expect(page.traces.length).toBeLessThanOrEqual(2)
      seen.push(...idsOf(page))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(seen).toHaveLength(7)
    expect([...seen].sort()).toEqual([...stored].sort())
    expect(seen[0]).toBe(stored[0])
  })

  it('shows the traces behind one that has more services than the first rows of a page', async () => {
    const { store, list } = await newWorkspace()
    const older = await store([ago(9_000)])
    const wide = await store(Array.from({ length: 50 }, (_, i) => ({ ...ago(1_000 + i), serviceName: `service ${i}` })))
    expect(idsOf(await list({ limit: '2' }))).toEqual([wide, older])
    expect(idsOf(await list({ limit: '2', name: `span ${id(1)}`, status: 'UNSET' }))).toEqual([wide, older])
  })

  it('finds traces by their time, over days, and puts a start in the future to its arrival', async () => {
    const { store, list } = await newWorkspace()
    const [now, past] = [Date.now(), Date.now() - 3 * DAY_MS]
    const old = await store([{ ...ago(3 * DAY_MS) }])
    const future = await store([
      { receivedAt: now - DAY_MS, startTimeUnixNano: BigInt(now + 300 * DAY_MS) * MS, endTimeUnixNano: 0n },
    ])
    const recent = await store([ago(1_000)])
    const iso = (ms: number) => new Date(ms).toISOString()
    expect(idsOf(await list())).toEqual([recent, future, old])
    expect(idsOf(await list({ to: iso(now - DAY_MS + 1) }))).toEqual([future, old])
    expect(idsOf(await list({ to: iso(now - DAY_MS) }))).toEqual([old])
    expect(idsOf(await list({ from: iso(past - 60_000), to: iso(past + 60_000) }))).toEqual([old])
    expect(idsOf(await list({ from: iso(now - 60_000) }))).toEqual([recent])
    expect(idsOf(await list({ from: '0001-01-01T00:00:00Z', to: '9999-01-01T00:00:00Z' }))).toHaveLength(3)
  })

  it('shows no trace whose spans were deleted, and nothing of another workspace', async () => {
    const mine = await newWorkspace()
    const theirs = await newWorkspace()
    const shared = await mine.store([ago(1_000)])
    await theirs.store([{ ...ago(500), spanId: id(5), serviceName: 'secret', sessionId: 'session-2' }], shared)
    await theirs.store([ago(400)])
    expect((await mine.list()).traces).toMatchObject([{ traceId: shared, spanCount: 1, services: ['shop'] }])
    expect(await mine.list({ service: 'secret' })).toEqual({ traces: [], nextCursor: null })
    expect(await mine.list({ session: 'session-2' })).toEqual({ traces: [], nextCursor: null })
    expect((await theirs.list({ session: 'session-2' })).traces).toHaveLength(1)
    await client.command({
      query: `DELETE FROM spans WHERE workspace_id = '${mine.workspaceId}'`,
      clickhouse_settings: { lightweight_deletes_sync: '2', mutations_sync: '2' },
    })
    expect(await mine.list()).toEqual({ traces: [], nextCursor: null })
  })

  it('refuses a filter that breaks its rule, and the cursor of another list, by name', async () => {
    const { ask, store, list } = await newWorkspace()
    await store([ago(2_000)])
    await store([ago(1_000)])
    const { nextCursor } = await list({ limit: '1' })
    const refused: [Record<string, string>, RegExp][] = [
      [{ status: 'error' }, /^status must be one of UNSET, OK, ERROR/],
      [{ minDurationMs: '-1' }, /^minDurationMs must be a whole number/],
      [{ attribute: 'key' }, /^attribute must be a key and a value/],
      [{ attribute: '=value' }, /^attribute must be a key and a value/],
      [{ hasFinding: 'false' }, /^hasFinding must be true/],
      [{ from: 'yesterday' }, /^from must be an RFC 3339 time/],
      [{ from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' }, /^from must be before "to"/],
      [{ limit: '101' }, /^limit must be a whole number from 1 to 100/],
      [{ limit: '1', service: 'x', cursor: nextCursor ?? '' }, /^cursor is for a list with other filters/],
      [{ cursor: 'abc' }, /^cursor is invalid/],
    ]
    for (const [query, message] of refused) {
      expect(await ask(query)).toMatchObject({
        status: 400,
        body: { code: 'REQUEST_INVALID', service: 'api-analytics', message: expect.stringMatching(message) },
      })
    }
  })
})
