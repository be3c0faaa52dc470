import { describe, expect, it } from 'vitest'
import { readTracesPage } from '../../../../api/traces/search/list-traces.ts'
import { createClickHouse } from '../../../../clickhouse/client.ts'
import { listTracesQuerySchema } from '../../../../schemas/http/traces/search.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { FairSlots } from '../../../../shared/concurrency/fair-slots.ts'
import { isCluster } from '../../../support/cluster/connect.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { client, DATABASE, id } from './fixture.ts'
import { ago, idsOf, newWorkspace } from './list-fixture.ts'

const url = sharedServices().clickhouseUrl

it.skipIf(isCluster(url))('reads no span that started after the time of a search, however many there are', async () => {
  const { store, workspaceId } = await newWorkspace()
  for (let i = 0; i < 3; i++) await store([ago(13 * DAY_MS + i)])
  await client.command({
    query: `INSERT INTO spans (workspace_id, received_at, trace_id, span_id, name, start_time_unix_nano, attribute_keys, attribute_values)
            SELECT '${workspaceId}', now64(3) - toIntervalDay(9), unhex(leftPad(hex(number + 1), 32, 'e')), unhex('0000000000000001'), 'n',
              toUnixTimestamp64Nano(now64(9) - toIntervalDay(9)), '1\\0needle\\0', 'yes' FROM numbers(3000)`,
  })
  const clickhouse = createClickHouse({ url, database: DATABASE, settings: { max_rows_to_read: '2000' } })
  const deps = { clickhouse, traceSearches: new FairSlots({ slots: 1, waiting: 1 }), now: Date.now }
  const to = new Date(Date.now() - 12.5 * DAY_MS).toISOString()
  const query = listTracesQuerySchema.parse({ attribute: 'needle=yes', to, limit: '1' })
  const found = await readTracesPage(deps, { workspaceId, deadline: AbortSignal.timeout(30_000), query })
  await clickhouse.close()
  expect(found).toMatchObject({ ok: true, value: { traces: [], nextCursor: null } })
})

it.skipIf(isCluster(url))(
  'finds the newest traces when a search is repeated and there is far more than before',
  async () => {
    const { store, workspaceId } = await newWorkspace()
    const attributes = { needle: 'yes' }
    const clickhouse = createClickHouse({ url, database: DATABASE, settings: { max_rows_to_read: '2000' } })
    const deps = { clickhouse, traceSearches: new FairSlots({ slots: 1, waiting: 1 }), now: Date.now }
    const query = listTracesQuerySchema.parse({ attribute: 'needle=yes', limit: '1' })
    const search = async () => {
      const found = await readTracesPage(deps, { workspaceId, deadline: AbortSignal.timeout(30_000), query })
      return found.ok ? idsOf(found.value) : found.problem
    }
    const old = await store([{ ...ago(5 * DAY_MS), attributes }])
    expect(await search()).toEqual([old])
    await client.command({
      query: `INSERT INTO spans (workspace_id, received_at, trace_id, span_id, name, start_time_unix_nano, attribute_keys, attribute_values)
            SELECT '${workspaceId}', now64(3) - toIntervalDay(2), unhex(leftPad(hex(number + 1), 32, 'f')), unhex('0000000000000001'), 'n',
              toUnixTimestamp64Nano(now64(9) - toIntervalDay(2)), '1\\0needle\\0', 'yes' FROM numbers(3000)`,
    })
    const newest = await store([{ ...ago(1_000), attributes }])
    expect(await search()).toEqual([newest])
    expect(await search()).toEqual([newest])
    await clickhouse.close()
  },
)

describe('GET /v3/traces with an attribute', () => {
  it('finds the newest traces of a frequent attribute, and all of a rare one among many', async () => {
    const { list, workspaceId } = await newWorkspace()
    const count = 1_000
    // Every third trace has the route, two have the user, one of them with another key as well.
    await client.command({
      query: `INSERT INTO spans (workspace_id, received_at, trace_id, span_id, name, service_name, start_time_unix_nano, end_time_unix_nano, attribute_keys, attribute_values)
              SELECT '${workspaceId}', now64(3), unhex(concat(repeat('d', 28), leftPad(hex(number + 1), 4, '0'))), unhex('0000000000000001'), 'n', 'shop',
                toUnixTimestamp64Nano(now64(9)) - 3600000000000 + number, toUnixTimestamp64Nano(now64(9)),
                concat('11\\0route\\0', if(number = 777, 'other', 'user'), '\\0'),
                concat(if(number % 3 = 0, '/a=b', '/c'), '\\0', if(number IN (5, 77, 777), 'u1', 'u2'))
              FROM numbers(${count})`,
    })
    const nameOf = (number: number) => 'd'.repeat(28) + (number + 1).toString(16).padStart(4, '0')
    const routed = await list({ attribute: 'route=/a=b', limit: '5' })
    expect(idsOf(routed)).toEqual([999, 996, 993, 990, 987].map(nameOf))
    const next = await list({ attribute: 'route=/a=b', limit: '2', cursor: routed.nextCursor ?? '' })
    expect(idsOf(next)).toEqual([984, 981].map(nameOf))
    const rare = await list({ attribute: 'user=u1' })
    expect({ ids: idsOf(rare), next: rare.nextCursor }).toEqual({ ids: [77, 5].map(nameOf), next: null })
    expect(await list({ attribute: 'user=' })).toEqual({ traces: [], nextCursor: null })
    const page = await list({ attribute: 'user=u1', limit: '1' })
    expect(idsOf(page)).toEqual([nameOf(77)])
    const last = await list({ attribute: 'user=u1', limit: '1', cursor: page.nextCursor ?? '' })
    expect(idsOf(last)).toEqual([nameOf(5)])
  })

  it('finds a rare attribute days before the newest traces, also in spans that arrived before or after the others', async () => {
    const { store, list } = await newWorkspace()
    const attributes = { needle: 'yes' }
    for (let i = 0; i < 4; i++) await store([ago(60_000 + i)])
    const stored: string[] = []
    for (const days of [0.1, 1.4, 1.6, 3.2, 7.5, 7.6, 13, 22]) {
      stored.push(await store([{ ...ago(days * DAY_MS), attributes }]))
      await store([ago(days * DAY_MS + 1_000)])
    }
    // It began nine days ago, and arrived just now.
    const late = { ...ago(9 * DAY_MS), receivedAt: Date.now() }
    stored.splice(6, 0, await store([{ ...late, attributes }]))
    // Its newest span arrived on another day than the one with the attribute.
    const lasting = await store([{ ...ago(5.6 * DAY_MS), attributes }])
    await store([{ ...ago(4.7 * DAY_MS), spanId: id(9) }], lasting)
    stored.splice(4, 0, lasting)
    expect(idsOf(await list({ attribute: 'needle=yes', limit: '100' }))).toEqual(stored)
    const seen: string[] = []
    let cursor: string | null | undefined
    do {
      const page = await list({ attribute: 'needle=yes', limit: '3', ...(cursor && { cursor }) })
      seen.push(...idsOf(page))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(seen).toEqual(stored)
    const from = new Date(Date.now() - 8 * DAY_MS).toISOString()
    expect(idsOf(await list({ attribute: 'needle=yes', limit: '2', from }))).toEqual(stored.slice(0, 2))
    expect(idsOf(await list({ attribute: 'needle=yes', limit: '4', service: 'shop', from }))).toEqual(
      stored.slice(0, 4),
    )
    expect(idsOf(await list({ attribute: 'needle=yes', from }))).toEqual(stored.slice(0, 7))
  })

  it('finds a rare attribute of an old day that thousands of newer traces have', async () => {
    const { store, list, workspaceId } = await newWorkspace()
    const attributes = { needle: 'yes' }
    const old: string[] = []
    for (let i = 0; i < 3; i++) old.push(await store([{ ...ago(12 * DAY_MS + i * 10_000), attributes }]))
    for (let i = 0; i < 30; i++) await store([ago(12 * DAY_MS - 1_000 - i)])
    await client.command({
      query: `INSERT INTO spans (workspace_id, received_at, trace_id, span_id, name, service_name, start_time_unix_nano, end_time_unix_nano, attribute_keys, attribute_values)
              SELECT '${workspaceId}', now64(3) - toIntervalDay(9), unhex(concat(repeat('e', 28), leftPad(hex(number + 1), 4, '0'))), unhex('0000000000000001'), 'n', 'shop',
                toUnixTimestamp64Nano(now64(9) - toIntervalDay(9)), toUnixTimestamp64Nano(now64(9) - toIntervalDay(9)), '1\\0needle\\0', 'yes' FROM numbers(3000)`,
    })
    const iso = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString()
    expect(idsOf(await list({ attribute: 'needle=yes', from: iso(12.5), to: iso(11.5), limit: '10' }))).toEqual(old)
  })
})
