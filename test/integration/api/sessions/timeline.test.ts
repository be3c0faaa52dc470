import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { type TimelineEntry, timelinePageSchema } from '../../../../schemas/http/sessions/timeline.ts'
import { MIB } from '../../../../schemas/units.ts'
import {
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  type StoredSpan,
  signToken,
  startApi,
  type TestApi,
} from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { at, insertRows } from '../../../support/workspaces/session-rows.ts'
import { createReader, eraseSession, insertRequests, type Reader } from './fixture.ts'

const DATABASE = `api_timeline_${process.pid}`
/** A whole second, so that all kinds can be at the same time. */
const NOW = Math.floor(Date.now() / 1_000) * 1_000
const FINDING = `fnd_${'a'.repeat(26)}`
const DEVICE = '5f0c54d2-6f14-4c2b-8f5f-2a5a3f5c0001'
const services = sharedServices()
let client: ClickHouseClient
let api: TestApi

beforeAll(async () => {
  client = await createDatabase(services.clickhouseUrl, DATABASE)
  api = await startApi(services, DATABASE)
})
afterAll(async () => {
  await api?.stop()
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

const readerOf = (name: string) => createReader(services.redisUrl, api.baseUrl, `timeline${name}`)
const nano = (offsetMs: number) => BigInt(NOW + offsetMs) * 1_000_000n
const rfc = (offsetMs: number) => `${new Date(NOW + offsetMs).toISOString().slice(0, -1)}000000Z`
const hex = (number: number, digits: number) => (number + 1).toString(16).padStart(digits, '0')

const spans = ({ workspaceId }: Reader, rows: readonly (Partial<StoredSpan> & { offsetMs: number })[]) =>
  insertSpans(
    client,
    rows.map(({ offsetMs, ...row }) => ({
      ...{ workspaceId, sessionId: 's', traceId: 'a'.repeat(32), spanId: '00000000000000a1' },
      ...{ startTimeUnixNano: nano(offsetMs), endTimeUnixNano: nano(offsetMs) + 1_500_000n },
      ...row,
    })),
  )
const logs = (
  { workspaceId }: Reader,
  rows: readonly { offsetMs: number; body: string; sessionId?: string; columns?: object }[],
) =>
  insertRows(
    client,
    'logs',
    rows.map(({ offsetMs, body, sessionId = 's', columns }) => ({
      ...{ workspace_id: workspaceId, surface_id: 'srf_1', session_id: sessionId, service_name: 'shop', body },
      ...{ received_at: at(NOW), timestamp: at(NOW + offsetMs), attributes: { 'session.id': sessionId } },
      ...columns,
    })),
  )
const findings = ({ workspaceId }: Reader, rows: readonly { offsetMs: number; message?: string }[]) =>
  insertExceptions(
    client,
    rows.map(({ offsetMs, ...row }) => ({
      ...{ workspaceId, sessionId: 's', findingId: FINDING, traceId: 'a'.repeat(32), receivedAt: NOW },
      ...{ occurredAtUnixNano: nano(offsetMs), ...row },
    })),
  )
const requests = (
  reader: Reader,
  table: 'session_identities' | 'session_heartbeats' | 'replay_chunks',
  rows: readonly { offsetMs: number; columns?: object; sessionId?: string }[],
) =>
  insertRequests(
    client,
    table,
    reader,
    rows.map(({ offsetMs, columns, sessionId = 's' }) => ({
      sessionId,
      receivedAtMs: NOW + offsetMs,
      ...(columns && { columns }),
    })),
  )
const chunkAt = (offsetMs: number, segmentId: string) => ({
  offsetMs: 0,
  columns: {
    ...{
      window_id: 'w',
      segment_id: segmentId,
      object_key: `key of ${segmentId}`,
      event_count: 3,
      has_full_snapshot: true,
    },
    ...{ first_event_ms: NOW + offsetMs, last_event_ms: NOW + offsetMs + 7 },
  },
})

async function pageOf(reader: Reader, query = '', sessionId = 's') {
  const { status, body } = await reader.get(`/v3/sessions/${sessionId}/timeline?${query}`)
  expect({ status, body }).toMatchObject({ status: 200 })
  return timelinePageSchema.parse(body)
}

/** Follows the cursors of a timeline and returns its pages. */
async function pagesOf(reader: Reader, query: string): Promise<TimelineEntry[][]> {
  const pages: TimelineEntry[][] = []
  for (let cursor = ''; ; ) {
    const { entries, nextCursor } = await pageOf(reader, `${query}${cursor}`)
    pages.push(entries)
    if (nextCursor === null) return pages
    cursor = `&cursor=${nextCursor}`
  }
}

describe('the timeline of a session', () => {
  it('has everything of it on one clock, the oldest first', async () => {
    const reader = await readerOf('whole')
    const other = await readerOf('other')
    for (const owner of [reader, other]) {
      await spans(owner, [
        { offsetMs: -9_000, statusCode: 2, name: 'n'.repeat(300), parentSpanId: '00000000000000a0' },
        { offsetMs: -9_000, spanId: '00000000000000a2', sessionId: 'of another session' },
      ])
      const identity = {
        identifier: 'anna',
        source_type: 'auth0',
        source_name: 'Auth0',
        name: 'Anna',
        device_id: DEVICE,
      }
      await requests(owner, 'session_identities', [{ offsetMs: -5_000, columns: identity }])
    }
    const record = { severity_number: 13, severity_text: 'WARN', event_name: 'e' }
    await logs(reader, [
      { offsetMs: -8_000, body: 'b'.repeat(2_000), columns: record },
      { offsetMs: -8_000, body: 'of another session', sessionId: 'other' },
    ])
    await findings(reader, [{ offsetMs: -7_000, message: 'x is not a function' }])
    await requests(reader, 'session_heartbeats', [
      { offsetMs: -6_000, columns: { device_id: DEVICE, visitor_id: DEVICE } },
    ])
    await requests(reader, 'replay_chunks', [chunkAt(-4_000, '0')])

    const ids = { traceId: 'a'.repeat(32), spanId: '00000000000000a1' }
    const common = { receivedCount: 1, surfaceId: 'srf_1' }
    const span = { ...ids, parentSpanId: '00000000000000a0', name: 'n'.repeat(256), serviceName: 'shop' }
    const log = {
      serviceName: 'shop',
      severityNumber: 13,
      severityText: 'WARN',
      eventName: 'e',
      body: 'b'.repeat(1_000),
    }
    const finding = { findingId: FINDING, serviceName: 'shop', type: 'TypeError', message: 'x is not a function' }
    const user = { identifier: 'anna', source: { type: 'auth0', name: 'Auth0' }, name: 'Anna', deviceId: DEVICE }
    const chunk = { windowId: 'w', segmentId: '0', eventCount: 3, hasFullSnapshot: true }
    expect(await pageOf(reader)).toEqual({
      entries: [
        { kind: 'span', at: rfc(-9_000), ...common, ...span, durationMs: 1.5, status: 'ERROR' },
        { kind: 'log', at: rfc(-8_000), ...common, ...log },
        { kind: 'finding', at: rfc(-7_000), ...common, ...ids, spanId: '00000000000000aa', ...finding },
        { kind: 'heartbeat', at: rfc(-6_000), ...common, deviceId: DEVICE, visitorId: DEVICE },
        { kind: 'identity', at: rfc(-5_000), ...common, ...user },
        {
          ...{ kind: 'replay', at: rfc(-4_000), ...common, ...chunk },
          ...{ chunkId: expect.stringMatching(/^chk_[0-9a-f]{32}$/), endsAt: new Date(NOW - 3_993).toISOString() },
        },
      ],
      nextCursor: null,
    })
  })

  it('shows each entry once on pages through equal times, and how often it was received', async () => {
    const reader = await readerOf('pages')
    const times = [-2_000, -1_000, -1_000, -1_000, -1_000, 0]
    const ofTimes = <T>(make: (offsetMs: number, i: number) => T) => times.map(make)
    const twice = <T>(rows: readonly T[]) => [...rows, ...rows.slice(1, 3)]
    await spans(reader, twice(ofTimes((offsetMs, i) => ({ offsetMs, spanId: hex(i, 16) }))))
    await logs(reader, twice(ofTimes((offsetMs, i) => ({ offsetMs, body: `record ${i}` }))))
    await findings(reader, twice(ofTimes((offsetMs, i) => ({ offsetMs, message: `error ${i}` }))))
    const beats = ofTimes((offsetMs, i) => ({ offsetMs, columns: { device_id: `d${i}`, identifier: `i${i}` } }))
    await requests(
      reader,
      'session_heartbeats',
      twice(beats.map(({ columns: { device_id }, offsetMs }) => ({ offsetMs, columns: { device_id } }))),
    )
    await requests(reader, 'session_identities', twice(beats))
    await requests(
      reader,
      'replay_chunks',
      ofTimes((offsetMs, i) => chunkAt(offsetMs, String(i))),
    )

    const [all = []] = await pagesOf(reader, 'limit=500')
    expect(all).toHaveLength(6 * times.length)
    expect(all.map(entry => entry.at)).toEqual(all.map(entry => entry.at).sort())
    const repeated = all.filter(({ receivedCount }) => receivedCount === 2)
    expect(repeated.map(({ kind }) => kind)).toEqual(
      ['span', 'log', 'finding', 'heartbeat', 'identity'].flatMap(kind => [kind, kind]),
    )
    for (const limit of [1, 3, 7, 35]) {
      const pages = await pagesOf(reader, `limit=${limit}`)
      expect(pages.flat(), `pages of ${limit}`).toEqual(all)
      expect(pages.every(page => page.length <= limit)).toBe(true)
    }
    const some = all.filter(({ kind }) => kind === 'log' || kind === 'replay')
    expect((await pagesOf(reader, 'limit=2&kinds=replay,log')).flat()).toEqual(some)
    const inTime = all.filter(entry => entry.at === rfc(-1_000))
    const [from, to] = [new Date(NOW - 1_000).toISOString(), new Date(NOW - 999).toISOString()]
    expect((await pagesOf(reader, `limit=3&from=${from}&to=${to}`)).flat()).toEqual(inTime)
  })

  it('loses nothing where a page ends within the entries of one time, some of which were received often', async () => {
    const reader = await readerOf('tied')
    await requests(reader, 'session_identities', [{ offsetMs: -2_000 }, { offsetMs: -1_000 }])
    await spans(
      reader,
      Array.from({ length: 5 }, () => ({ offsetMs: -1_000 })),
    )
    await logs(reader, [{ offsetMs: -1_000, body: 'x' }])
    const kinds = ['identity', 'span', 'log', 'identity']
    for (const limit of [1, 2, 3, 4]) {
      const entries = (await pagesOf(reader, `limit=${limit}`)).flat()
      expect({ limit, kinds: entries.map(({ kind }) => kind) }).toEqual({ limit, kinds })
    }
  })

  it('has the spans of many traces, also of one that was open all the time', async () => {
    const reader = await readerOf('traces')
    const long = { traceId: 'b'.repeat(32), endTimeUnixNano: nano(0) }
    const rows = Array.from({ length: 400 }, (_, i) => ({
      ...{ offsetMs: -100_000 + 100 * i, traceId: hex(i, 32), spanId: '00000000000000c1' },
      ...(i % 40 === 7 && { ...long, spanId: hex(i, 16) }),
    }))
    await spans(reader, rows)
    const shown = (await pagesOf(reader, 'limit=30')).flat()
    expect(shown.map(entry => entry.at)).toEqual(rows.map(({ offsetMs }) => rfc(offsetMs)))
    expect(shown.map(entry => entry.kind === 'span' && entry.traceId)).toEqual(rows.map(({ traceId }) => traceId))
  })

  it('ends a page that would be over 1 MiB', async () => {
    const reader = await readerOf('large')
    await requests(reader, 'session_heartbeats', [{ offsetMs: 0 }])
    const bodies = Array.from({ length: 400 }, (_, i) => ({ offsetMs: i - 1_000, body: `${i} ${'😀'.repeat(990)}` }))
    await logs(reader, bodies)
    const pages = await pagesOf(reader, 'limit=500&kinds=log')
    expect(pages.length).toBe(2)
    for (const page of pages) expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(1.1 * MIB)
    expect(pages.flat().map(entry => entry.kind === 'log' && entry.body.split(' ')[0])).toEqual(
      bodies.map(({ body }) => body.split(' ')[0]),
    )
  })

  it('is gone once the session is erased', async () => {
    const reader = await readerOf('erased')
    await spans(reader, [{ offsetMs: 0 }])
    await logs(reader, [{ offsetMs: 0, body: 'x' }])
    await findings(reader, [{ offsetMs: 0 }])
    for (const table of ['session_identities', 'session_heartbeats', 'replay_chunks'] as const) {
      await requests(reader, table, [{ offsetMs: 0 }])
    }
    expect((await pageOf(reader)).entries).toHaveLength(6)
    await eraseSession(client, reader, 's')
    expect(await reader.get('/v3/sessions/s/timeline')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
  })

  it('refuses what breaks a rule, with the parameter and the rule', async () => {
    const reader = await readerOf('rules')
    await requests(reader, 'session_heartbeats', [{ offsetMs: 0 }, { offsetMs: 1 }, { offsetMs: 0, sessionId: 't' }])
    const { nextCursor } = await pageOf(reader, 'limit=1')
    const refusals: Record<string, RegExp> = {
      's/timeline?limit=0': /^limit must be a whole number from 1 to 500/,
      's/timeline?limit=501': /^limit must be a whole number from 1 to 500/,
      's/timeline?kinds=': /^kinds must have one or more of span, log/,
      's/timeline?kinds=span,spans': /^kinds must have one or more of span, log/,
      's/timeline?to=x': /^to must be an RFC 3339 time/,
      's/timeline?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z': /^from must be before "to"/,
      's/timeline?cursor=xyz': /^cursor is invalid/,
      [`t/timeline?limit=1&cursor=${nextCursor}`]: /^cursor is for a list with other filters/,
    }
    for (const [path, message] of Object.entries(refusals)) {
      const { status, body } = await reader.get(`/v3/sessions/${path}`)
      expect({ path, status, body }).toMatchObject({
        status: 400,
        body: { code: 'REQUEST_INVALID', service: 'api-analytics', message: expect.stringMatching(message) },
      })
    }
    const [early, late] = ['0001-01-01T00:00:00Z', '9999-12-31T00:00:00Z']
    expect((await pageOf(reader, `from=${early}&to=${late}`)).entries).toHaveLength(2)
    expect((await pageOf(reader, `from=${early}&to=1969-01-01T00:00:00Z`)).entries).toEqual([])
  })

  it('is read only within its workspace and with the permission for it', async () => {
    const reader = await readerOf('access')
    await requests(reader, 'session_heartbeats', [{ offsetMs: 0, sessionId: 'mine' }])
    const stranger = await readerOf('stranger')
    for (const id of ['mine', 'unknown', 'x'.repeat(1_025)]) {
      expect(await stranger.get(`/v3/sessions/${id}/timeline`)).toMatchObject({
        status: 404,
        body: { code: 'NOT_FOUND' },
      })
    }
    const [slug, userId] = [`timelinenarrow${process.pid}`, 'user_3']
    await putWorkspace(services.redisUrl, { id: `ws_${slug}`, slug, userId, permissions: ['org:telemetry:read'] })
    const headers = { authorization: `Bearer ${await signToken({ sub: userId, org: slug })}` }
    const response = await fetch(`${api.baseUrl}/v3/sessions/mine/timeline`, { headers })
    expect([response.status, await response.json()]).toMatchObject([
      403,
      { message: 'the permission org:sessions:read is required' },
    ])
  })
})
