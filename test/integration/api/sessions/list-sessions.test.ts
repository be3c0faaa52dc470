import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { type ListedSession, sessionsPageSchema } from '../../../../schemas/http/sessions/schemas.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../schemas/units.ts'
import {
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createReader, eraseSession, insertRequests, type Reader, type RequestRow } from './fixture.ts'

const DATABASE = `api_session_list_${process.pid}`
const NOW = Date.now()
const FINDING = `fnd_${'a'.repeat(26)}`
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

const readerOf = (name: string) => createReader(services.redisUrl, api.baseUrl, `list${name}`)
const heartbeats = (reader: Reader, rows: readonly RequestRow[]) =>
  insertRequests(client, 'session_heartbeats', reader, rows)
const identities = (reader: Reader, rows: readonly RequestRow[]) =>
  insertRequests(client, 'session_identities', reader, rows)
const chunks = (reader: Reader, rows: readonly RequestRow[]) => insertRequests(client, 'replay_chunks', reader, rows)
const beat = (sessionId: string, agoMs: number, change: Partial<RequestRow> = {}): RequestRow => ({
  sessionId,
  receivedAtMs: NOW - agoMs,
  ...change,
})
const time = (agoMs: number) => new Date(NOW - agoMs).toISOString()
const nano = (agoMs: number) => BigInt(NOW - agoMs) * 1_000_000n

async function pageOf(reader: Reader, query = '') {
  const { status, body } = await reader.get(`/v3/sessions?${query}`)
  expect({ status, body }).toMatchObject({ status: 200 })
  return sessionsPageSchema.parse(body)
}
const idsOf = (sessions: readonly ListedSession[]) => sessions.map(({ id }) => id)
const listed = async (reader: Reader, query = '') => idsOf((await pageOf(reader, query)).sessions)

/** Follows the cursors of a list and returns its pages. */
async function pagesOf(reader: Reader, query: string): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor = ''; ; ) {
    const { sessions, nextCursor } = await pageOf(reader, `${query}${cursor}`)
    pages.push(idsOf(sessions))
    if (nextCursor === null) return pages
    cursor = `&cursor=${nextCursor}`
  }
}

describe('sessions with the longest ids', () => {
  it('are listed, filtered, read and followed', async () => {
    const reader = await readerOf('long')
    const ids = Array.from({ length: 100 }, (_, i) => `${i}-`.padEnd(1_024, '/').replaceAll('/', '😀').slice(0, 2_048))
    expect([...(ids[0] ?? '')]).toHaveLength(1_024)
    await heartbeats(
      reader,
      ids.map((id, i) => beat(id, i)),
    )
    await chunks(
      reader,
      ids.map((id, i) => beat(id, i)),
    )
    const { sessions, nextCursor } = await pageOf(reader, 'limit=100&hasReplay=true')
    expect(idsOf(sessions)).toEqual(ids)
    expect(nextCursor).toBeNull()
    const path = `/v3/sessions/${encodeURIComponent(ids[7] ?? '')}`
    expect(await reader.get(path)).toMatchObject({ status: 200, body: { session: { id: ids[7], deviceCount: 1 } } })
    expect(await reader.get(`${path}/timeline`)).toMatchObject({ status: 200, body: { entries: [{}, {}] } })
    expect(await reader.get(`${path}/replay`)).toMatchObject({ status: 200 })
    expect(await reader.get(`/v3/sessions/${'x'.repeat(1_025)}`)).toMatchObject({ status: 404 })
  })
})

describe('a listed session', () => {
  it('has its user, its surfaces, when it was seen, and counts of everything', async () => {
    const reader = await readerOf('whole')
    const other = await readerOf('stranger')
    const identity = { identifier: 'anna', source_type: 'auth0', source_name: 'Auth0', traits: '{}' }
    await identities(reader, [
      beat('s/ü 1', 3 * DAY_MS, { columns: { ...identity, identifier: 'before' } }),
      beat('s/ü 1', 2 * DAY_MS, { columns: { ...identity, name: 'x'.repeat(2_000), email: 'anna@example.org' } }),
    ])
    await heartbeats(reader, [beat('s/ü 1', MINUTE_MS, { surfaceId: 'srf_2' }), beat('s/ü 1', HOUR_MS)])
    await chunks(reader, [beat('s/ü 1', HOUR_MS), beat('s/ü 1', HOUR_MS + 1)])
    const { workspaceId } = reader
    const span = { workspaceId, sessionId: 's/ü 1', receivedAt: NOW - DAY_MS, startTimeUnixNano: nano(DAY_MS) }
    const spans = [
      { ...span, traceId: 'a'.repeat(32), spanId: '00000000000000a1', statusCode: 2 },
      { ...span, traceId: 'a'.repeat(32), spanId: '00000000000000a2' },
      { ...span, traceId: 'b'.repeat(32), spanId: '00000000000000b1', statusCode: 2 },
    ]
    await insertSpans(
      client,
      spans.map(row => ({ ...row, endTimeUnixNano: nano(DAY_MS) })),
    )
    const exception = { workspaceId, sessionId: 's/ü 1', findingId: FINDING, traceId: 'a'.repeat(32) }
    await insertExceptions(client, [exception, exception])
    await heartbeats(other, [beat('s/ü 1', 0, { surfaceId: 'srf_of_other' }), beat('of other', 0)])

    expect(await pageOf(reader)).toEqual({
      sessions: [
        {
          id: 's/ü 1',
          surfaceIds: ['srf_1', 'srf_2'],
          firstSeenAt: time(3 * DAY_MS),
          lastSeenAt: time(MINUTE_MS),
          identity: { identifier: 'anna', name: 'x'.repeat(1_000), email: 'anna@example.org' },
          traceCount: 2,
          errorCount: 2,
          findingCount: 1,
          replayChunkCount: 2,
        },
      ],
      nextCursor: null,
    })
  })

  it('is found by any kind of its requests, and by its spans, which count within the day of their arrival', async () => {
    const reader = await readerOf('kinds')
    const { workspaceId } = reader
    await heartbeats(reader, [beat('by heartbeat', 4 * HOUR_MS)])
    await identities(reader, [beat('by identity', 3 * HOUR_MS, { columns: { identifier: 'i' } })])
    await chunks(reader, [beat('by chunk', 5 * HOUR_MS)])
    const noon = Math.floor(NOW / DAY_MS) * DAY_MS - 3 * DAY_MS + DAY_MS / 2
    const span = { workspaceId, traceId: 'c'.repeat(32), spanId: '00000000000000c1', receivedAt: noon }
    const at = (ms: number) => ({
      startTimeUnixNano: BigInt(ms) * 1_000_000n,
      endTimeUnixNano: BigInt(ms) * 1_000_000n,
    })
    await insertSpans(client, [
      { ...span, sessionId: 'by span', ...at(noon - 1_000) },
      { ...span, sessionId: 'of a late clock', ...at(noon - 300 * DAY_MS) },
      { ...span, sessionId: 'of an early clock', ...at(noon + 300 * DAY_MS) },
    ])
    await insertExceptions(client, [
      { workspaceId, sessionId: 'known by a finding alone', findingId: FINDING, traceId: 'c'.repeat(32) },
    ])
    const { sessions } = await pageOf(reader)
    const spanIds = ['of an early clock', 'by span', 'of a late clock']
    expect(idsOf(sessions)).toEqual(['by identity', 'by heartbeat', 'by chunk', ...spanIds])
    const seen = sessions.slice(3).map(({ lastSeenAt }) => Date.parse(lastSeenAt))
    expect(seen.slice(1).map(ms => ms - noon)).toEqual([-1_000, -300 * DAY_MS])
    expect(seen[0]).toBeLessThanOrEqual(Date.now())
    expect(sessions.slice(0, 4).map(({ timesOfArrival }) => timesOfArrival)).toEqual([true, true, true, undefined])
    expect(sessions[0]).toMatchObject({ identity: { identifier: 'i' }, surfaceIds: ['srf_1'] })
    expect(sessions[4]).toMatchObject({ identity: null, surfaceIds: [], traceCount: 1 })
  })

  it('whose sender has a clock ahead of this one was seen now', async () => {
    const reader = await readerOf('ahead')
    const times = { startTimeUnixNano: nano(-300 * DAY_MS), endTimeUnixNano: nano(-300 * DAY_MS) }
    const span = { workspaceId: reader.workspaceId, traceId: 'd'.repeat(32), spanId: '00000000000000d1', ...times }
    await insertSpans(client, [{ ...span, sessionId: 'ahead' }])
    await heartbeats(reader, [beat('before', MINUTE_MS)])
    const { sessions } = await pageOf(reader)
    expect(idsOf(sessions)).toEqual(['ahead', 'before'])
    expect(Date.parse(sessions[0]?.lastSeenAt ?? '')).toBeLessThanOrEqual(Date.now())
  })

  it('is gone once it is erased', async () => {
    const reader = await readerOf('erased')
    const span = { workspaceId: reader.workspaceId, traceId: 'e'.repeat(32), spanId: '00000000000000e1' }
    await insertSpans(client, [{ ...span, sessionId: 'gone' }])
    for (const insert of [heartbeats, identities, chunks]) await insert(reader, [beat('gone', 0), beat('kept', 1)])
    expect(await listed(reader)).toEqual(['gone', 'kept'])
    await eraseSession(client, reader, 'gone')
    expect(await listed(reader)).toEqual(['kept'])
    expect(await listed(reader, 'hasReplay=true')).toEqual(['kept'])
  })
})

describe('the times of a session', () => {
  const span = (sessionId: string, fromAgoMs: number, toAgoMs: number, receivedAgoMs: number) => ({
    ...{ sessionId, traceId: 'a'.repeat(32), spanId: '00000000000000a1', receivedAt: NOW - receivedAgoMs },
    ...{ startTimeUnixNano: nano(fromAgoMs) + 5n, endTimeUnixNano: nano(toAgoMs) },
  })
  const recorded = (firstAgoMs: number, lastAgoMs: number) => ({
    columns: { first_event_ms: NOW - firstAgoMs, last_event_ms: NOW - lastAgoMs },
  })

  it('are the same in a list, in its page and in its timeline, and those of what happened', async () => {
    const reader = await readerOf('times')
    await identities(
      reader,
      ['backfilled', 'live', 'recorded'].map(id =>
        beat(id, MINUTE_MS, { columns: { identifier: 'mara', traits: '{}' } }),
      ),
    )
    await heartbeats(
      reader,
      ['backfilled', 'live', 'beats'].map(id => beat(id, 0)),
    )
    await insertSpans(
      client,
      [
        span('backfilled', 20 * HOUR_MS, 19 * HOUR_MS, MINUTE_MS),
        span('live', 2 * MINUTE_MS, MINUTE_MS, MINUTE_MS),
        span('wrong clock', 400 * DAY_MS, 400 * DAY_MS, MINUTE_MS),
      ].map(row => ({ ...row, workspaceId: reader.workspaceId })),
    )
    await chunks(reader, [beat('recorded', MINUTE_MS, recorded(30 * HOUR_MS, 29 * HOUR_MS))])
    const { sessions } = await pageOf(reader)
    const times = Object.fromEntries(sessions.map(({ id, ...rest }) => [id, timesOf(rest)]))
    expect(times).toEqual({
      backfilled: [20 * HOUR_MS, 19 * HOUR_MS, undefined],
      live: [2 * MINUTE_MS, 0, undefined],
      beats: [0, 0, true],
      recorded: [30 * HOUR_MS, 29 * HOUR_MS, undefined],
      'wrong clock': [400 * DAY_MS, 400 * DAY_MS, undefined],
    })
    for (const { id, firstSeenAt, lastSeenAt, timesOfArrival } of sessions) {
      const path = `/v3/sessions/${encodeURIComponent(id)}`
      const read = await reader.get(path)
      expect(read).toMatchObject({ status: 200, body: { session: { firstSeenAt, lastSeenAt } } })
      expect((read.body as { session: object }).session).toEqual(
        expect.objectContaining(timesOfArrival ? { timesOfArrival } : {}),
      )
      const { entries } = (await reader.get(`${path}/timeline`)).body as { entries: { at: string }[] }
      expect(Date.parse(entries[0]?.at ?? '')).toBe(Date.parse(firstSeenAt))
    }
  })

  const timesOf = ({ firstSeenAt, lastSeenAt, timesOfArrival }: Omit<ListedSession, 'id'>) => [
    ...[firstSeenAt, lastSeenAt].map(at => NOW - Date.parse(at)),
    timesOfArrival,
  ]
})

describe('a list of sessions', () => {
  it('is filtered by user, surface, findings, replay and time', async () => {
    const reader = await readerOf('filters')
    const { workspaceId } = reader
    await heartbeats(reader, [
      beat('a', MINUTE_MS, { surfaceId: 'srf_a' }),
      beat('b', 2 * HOUR_MS, { surfaceId: 'srf_b' }),
      beat('c', 2 * DAY_MS),
      beat('d', 9 * DAY_MS),
    ])
    const user = (identifier: string, email = '') => ({ columns: { identifier, email } })
    await identities(reader, [
      beat('a', 2 * MINUTE_MS, user('anna', 'anna@example.org')),
      beat('a', MINUTE_MS, user('bea')),
      beat('d', 12 * DAY_MS, user('anna')),
      beat('c', 2 * DAY_MS, user('carl', 'anna')),
      beat('b', 2 * HOUR_MS, user("anna' OR 1=1")),
    ])
    await chunks(reader, [beat('b', 3 * HOUR_MS), beat('d', 10 * DAY_MS)])
    const exception = { workspaceId, findingId: FINDING, traceId: 'f'.repeat(32) }
    await insertExceptions(client, [
      { ...exception, sessionId: 'c', receivedAt: NOW - 4 * DAY_MS },
      { ...exception, sessionId: 'd' },
    ])
    const found: Record<string, string[]> = {
      '': ['a', 'b', 'c', 'd'],
      'user=anna': ['a', 'c', 'd'],
      'user=anna%40example.org': ['a'],
      'user=bea': ['a'],
      'user=unknown': [],
      'surface=srf_1': ['a', 'b', 'c', 'd'],
      'surface=srf_a': ['a'],
      'surface=srf_b': ['b'],
      'hasReplay=true': ['b', 'd'],
      'hasFinding=true': ['c', 'd'],
      'hasFinding=true&hasReplay=true': ['d'],
      'hasReplay=true&user=anna': ['d'],
      [`from=${time(3 * DAY_MS)}`]: ['a', 'b', 'c'],
      [`to=${time(3 * DAY_MS)}`]: ['d'],
      [`from=${time(HOUR_MS)}&to=${time(0)}`]: ['a'],
      [`from=${time(MINUTE_MS)}&to=${time(MINUTE_MS - 1)}`]: ['a'],
      [`from=${time(MINUTE_MS - 1)}`]: [],
      [`from=${time(2 * DAY_MS)}&to=${time(2 * DAY_MS - 1)}&hasFinding=true&user=anna`]: ['c'],
    }
    const answers = await Promise.all(Object.keys(found).map(async query => [query, await listed(reader, query)]))
    expect(Object.fromEntries(answers)).toEqual(found)
  })

  it('is not changed by sessions of another workspace with the same ids', async () => {
    const [reader, other] = [await readerOf('own'), await readerOf('foreign')]
    await heartbeats(reader, [beat('a', HOUR_MS), beat('b', 2 * HOUR_MS)])
    await heartbeats(other, [beat('b', 0, { surfaceId: 'srf_2' })])
    await identities(other, [beat('b', 0, { columns: { identifier: 'anna' } })])
    await chunks(other, [beat('b', 0)])
    const times = { startTimeUnixNano: nano(0), endTimeUnixNano: nano(0) }
    const span = { workspaceId: other.workspaceId, sessionId: 'b', traceId: 'b'.repeat(32), spanId: '00000000000000b1' }
    await insertSpans(client, [{ ...span, ...times }])
    await insertExceptions(client, [{ ...span, findingId: FINDING }])
    expect(await listed(reader)).toEqual(['a', 'b'])
    for (const query of [
      'user=anna',
      'surface=srf_2',
      'hasReplay=true',
      'hasFinding=true',
      `from=${time(MINUTE_MS)}`,
    ]) {
      expect({ query, sessions: await listed(reader, query) }).toEqual({ query, sessions: [] })
    }
  })

  it('is in the order of the requested time', async () => {
    const reader = await readerOf('period')
    await heartbeats(reader, [
      ...[beat('a', 0), beat('a', 3 * DAY_MS), beat('b', HOUR_MS), beat('b', 2 * DAY_MS)],
      ...[beat('a', 2 * HOUR_MS, { surfaceId: 'srf_2' }), beat('b', 2 * HOUR_MS - 1, { surfaceId: 'srf_2' })],
    ])
    expect(await listed(reader)).toEqual(['a', 'b'])
    expect(await listed(reader, `to=${time(DAY_MS)}`)).toEqual(['b', 'a'])
    expect(await listed(reader, 'surface=srf_2')).toEqual(['b', 'a'])
  })

  it('has spans that were sent before its end only', async () => {
    const reader = await readerOf('spans')
    const { workspaceId } = reader
    const noon = Math.floor(NOW / DAY_MS) * DAY_MS - 3 * DAY_MS + DAY_MS / 2
    const spanAt = (sessionId: string, fromMs: number, toMs: number) => {
      const times = { startTimeUnixNano: BigInt(fromMs) * 1_000_000n, endTimeUnixNano: BigInt(toMs) * 1_000_000n }
      const ids = { traceId: sessionId.repeat(32), spanId: '00000000000000e1' }
      return { workspaceId, sessionId, ...ids, ...times, receivedAt: noon }
    }
    await insertSpans(client, [
      spanAt('a', noon - HOUR_MS, noon),
      spanAt('b', noon - 2 * HOUR_MS, noon - HOUR_MS),
      spanAt('c', noon + 1, noon + HOUR_MS),
    ])
    const to = (ms: number) => `to=${new Date(ms).toISOString()}`
    expect(await listed(reader)).toEqual(['c', 'a', 'b'])
    expect(await listed(reader, to(noon + 1))).toEqual(['a', 'b'])
    expect(await listed(reader, to(noon - HOUR_MS))).toEqual(['b'])
    expect(await listed(reader, `from=${new Date(noon).toISOString()}&${to(noon + HOUR_MS)}`)).toEqual(['c', 'a'])
  })

  it.each(['', '&surface=srf_1', '&user=anna', '&hasReplay=true', '&hasFinding=true'])(
    'shows each session once on pages through equal times%s',
    async filter => {
      const reader = await readerOf(`pages${filter.replaceAll(/[^a-z]/gi, '').toLowerCase()}`)
      const ages = [0, 0, MINUTE_MS, 2 * HOUR_MS, DAY_MS - 1, DAY_MS, 3 * DAY_MS, 20 * DAY_MS]
      const all = ages.flatMap((age, i) => Array.from({ length: 7 }, (_, j) => beat(`session ${i} ${j}`, age)))
      const columns = { columns: { identifier: 'anna' } }
      await heartbeats(reader, all)
      await identities(
        reader,
        all.map(row => ({ ...row, ...columns })),
      )
      await chunks(reader, all)
      const { workspaceId } = reader
      const exception = { workspaceId, findingId: FINDING, traceId: 'f'.repeat(32) }
      await insertExceptions(
        client,
        all.map(({ sessionId }) => ({ ...exception, sessionId })),
      )
      const pages = await pagesOf(reader, `limit=5${filter}`)
      expect(pages.slice(0, -1).every(page => page.length === 5)).toBe(true)
      const times = new Map(all.map(({ sessionId, receivedAtMs }) => [sessionId, receivedAtMs]))
      const shown = pages.flat()
      expect([...shown].sort()).toEqual([...times.keys()].sort())
      expect(shown.map(id => times.get(id))).toEqual([...times.values()].sort((a, b) => b - a))
    },
  )

  it('keeps a session in its place that is active while pages are read', async () => {
    const reader = await readerOf('active')
    await heartbeats(
      reader,
      [1, 2, 3, 4].map(i => beat(`s${i}`, i * HOUR_MS)),
    )
    const first = await pageOf(reader, 'limit=2')
    const activeAtMs = Date.now() + 5
    await heartbeats(
      reader,
      ['s1', 's4'].map(sessionId => ({ sessionId, receivedAtMs: activeAtMs })),
    )
    const second = await pageOf(reader, `limit=2&cursor=${first.nextCursor}`)
    expect([idsOf(first.sessions), idsOf(second.sessions)]).toEqual([
      ['s1', 's2'],
      ['s3', 's4'],
    ])
    expect(second.nextCursor).toBeNull()
    expect((await listed(reader)).slice(0, 2).sort()).toEqual(['s1', 's4'])
  })

  it('has short pages before the last where few of many sessions match', async () => {
    const reader = await readerOf('few')
    await client.command({
      query: `INSERT INTO session_heartbeats (workspace_id, surface_id, session_id, received_at)
        SELECT '${reader.workspaceId}', 'srf_1', concat('s', toString(number)), fromUnixTimestamp64Milli(${NOW} - number)
        FROM numbers(10500)`,
      clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
    })
    await chunks(reader, [beat('s3', DAY_MS), beat('last', 2 * DAY_MS)])
    const first = await pageOf(reader, 'hasReplay=true&limit=2')
    expect(idsOf(first.sessions)).toEqual(['s3'])
    const second = await pageOf(reader, `hasReplay=true&limit=2&cursor=${first.nextCursor}`)
    expect(second).toMatchObject({ sessions: [{ id: 'last' }], nextCursor: null })
  })

  it('refuses what breaks a rule, with the parameter and the rule', async () => {
    const reader = await readerOf('rules')
    await heartbeats(reader, [beat('a', 0), beat('b', 1)])
    const { nextCursor } = await pageOf(reader, 'limit=1')
    const refusals: Record<string, RegExp> = {
      'limit=0': /^limit must be a whole number from 1 to 100/,
      'limit=101': /^limit must be a whole number from 1 to 100/,
      'user=': /^user must not be empty/,
      [`user=${'x'.repeat(1_025)}`]: /^user must have at most 1024 characters/,
      'surface=': /^surface must not be empty/,
      'hasFinding=false': /^hasFinding must be true/,
      'hasReplay=1': /^hasReplay must be true/,
      'from=yesterday': /^from must be an RFC 3339 time/,
      [`from=${time(0)}&to=${time(0)}`]: /^from must be before "to"/,
      [`user=x&cursor=${nextCursor}`]: /^cursor is for a list with other filters/,
      'cursor=xyz': /^cursor is invalid/,
    }
    for (const [query, message] of Object.entries(refusals)) {
      const { status, body } = await reader.get(`/v3/sessions?${query}`)
      expect({ query, status, body }).toMatchObject({
        status: 400,
        body: { code: 'REQUEST_INVALID', service: 'api-analytics', message: expect.stringMatching(message) },
      })
    }
    expect(await listed(reader, 'from=0001-01-01T00:00:00Z&to=9999-12-31T00:00:00Z')).toEqual(['a', 'b'])
  })

  it('is read only with the permission for it, and by members', async () => {
    await putWorkspace(services.redisUrl, {
      id: `ws_narrow${process.pid}`,
      slug: `narrow${process.pid}`,
      userId: 'user_3',
      permissions: ['org:findings:read'],
    })
    const ask = async (claims: Record<string, unknown>) => {
      const headers = { authorization: `Bearer ${await signToken(claims)}` }
      const response = await fetch(`${api.baseUrl}/v3/sessions`, { headers })
      return { status: response.status, body: (await response.json()) as unknown }
    }
    expect(await ask({ sub: 'user_3', org: `narrow${process.pid}` })).toMatchObject({
      status: 403,
      body: { message: 'the permission org:sessions:read is required' },
    })
    expect(await ask({ sub: 'user_2', org: `narrow${process.pid}` })).toMatchObject({ status: 404 })
  })
})
