import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { replayPageSchema } from '../../../schemas/http/replay.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { createDatabase, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { at, insertRows, ownerColumns, storeChunk, type TestChunk } from '../../support/workspaces/session-rows.ts'

const DATABASE = `api_replay_${process.pid}`
const START = 1_700_000_000_000
const surfaceId = `srf_${randomBytes(6).toString('hex')}`
const ownerOf = (sessionId: string) => ({ workspaceId: 'ws_1', surfaceId, sessionId })
const event = (offsetMs: number, type = 3, data: unknown = { text: 'ü"\\' }) => ({
  type,
  data,
  timestamp: START + offsetMs,
})

describe('the replay of a session', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let objects: ObjectStore
  let api: TestApi
  let token: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
    const { s3 } = services
    api = await startApi(services, DATABASE, s3Settings(s3))
    token = await signToken()
  })
  afterAll(async () => {
    await api?.stop()
    objects?.close()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  const store = (sessionId: string, chunk: TestChunk) => storeChunk(client, objects, ownerOf(sessionId), chunk)

  it('lists chunks in reading order page by page, in whatever order they arrived', async () => {
    const keys: string[] = []
    for (const segment of [2, 0, 4, 1, 3]) {
      const chunk = {
        windowId: 'w',
        segmentId: String(segment),
        events: [event(segment * 1_000, segment === 0 ? 2 : 3)],
      }
      keys[segment] = await store('paged', chunk)
    }
    const seen: string[] = []
    let path = '/replay?limit=2'
    for (let page = 0; page < 3; page++) {
      const { chunks, nextCursor } = await pageOf('paged', path)
      seen.push(...chunks.map(({ objectKey }) => objectKey))
      expect(nextCursor === null).toBe(page === 2)
      path = `/replay?limit=2&cursor=${nextCursor}`
    }
    expect(seen).toEqual(keys)
    const [first] = (await pageOf('paged', '/replay?limit=1')).chunks
    expect(first).toMatchObject({
      windowId: 'w',
      segmentId: '0',
      firstTs: START,
      firstEventAt: '2023-11-14T22:13:20.000Z',
      eventCount: 1,
      hasFullSnapshot: true,
    })
    expect((await ask('paged', '')).body).toContain('"chunkCount":5')
  })

  it('names missing segments and windows that cannot be played from the beginning', async () => {
    for (const [windowId, segmentId, type] of [
      ['a', '1', 2],
      ['a', '2', 3],
      ['a', '7', 3],
      ['a', '9', 3],
      ['b', '0', 3],
      ['b', '1', 2],
      ['c', 'x-1', 2],
      ['c', 'x-5', 3],
    ] as const) {
      await store('gaps', { windowId, segmentId, events: [event(Number(segmentId.replace(/\D/g, '')), type)] })
    }
    const page = await pageOf('gaps', '/replay?limit=1')
    expect(page).toMatchObject({
      gaps: [
        { windowId: 'a', after: 2, before: 7, missingCount: 4 },
        { windowId: 'a', after: 7, before: 9, missingCount: 1 },
      ],
      missingFullSnapshots: ['b'],
      truncated: false,
    })
  })

  it('is empty for a session without a replay, and not found for an unknown session', async () => {
    await insertRows(client, 'session_heartbeats', [{ ...ownerColumns(ownerOf('quiet')), received_at: at(Date.now()) }])
    expect(await pageOf('quiet', '/replay')).toEqual({
      chunks: [],
      nextCursor: null,
      gaps: [],
      missingFullSnapshots: [],
      truncated: false,
    })
    expect(await ask('quiet', '/replay/events')).toMatchObject({ status: 200, body: '' })
    const stranger = await signToken({ sub: 'user_2', org: 'globex' })
    for (const path of ['/replay', '/replay/events']) {
      expect(await ask('nobody', path)).toMatchObject({ status: 404 })
      expect(await ask('x'.repeat(1_025), path)).toMatchObject({ status: 404 })
      expect(await ask('paged', path, stranger)).toMatchObject({ status: 404 })
      expect(await ask('paged', path, '')).toMatchObject({ status: 401 })
    }
  })

  it('refuses an invalid limit or cursor', async () => {
    const forged = Buffer.from(JSON.stringify(['99999999999999999999', '1', '1', `chk_${'0'.repeat(32)}`])).toString(
      'base64url',
    )
    for (const query of ['limit=0', 'limit=501', 'cursor=x', 'cursor=', `cursor=${forged}`]) {
      const { status, body } = await ask('paged', `/replay?${query}`)
      expect({ status, code: JSON.parse(body) }).toMatchObject({ status: 400, code: { code: 'REQUEST_INVALID' } })
    }
  })

  it('returns the events of all windows, or of one, in the order of their times', async () => {
    const events = Array.from({ length: 400 }, (_, i) => event(i * 10, i < 2 ? 2 : 3, { i, text: 'é'.repeat(i) }))
    const ofWindow = (windowId: string) => events.filter((_, i) => (i % 3 === 0) === (windowId === 'b'))
    for (const windowId of ['a', 'b']) {
      const own = ofWindow(windowId)
      for (const segment of [3, 1, 0, 2]) {
        const part = own.slice((segment * own.length) / 4, ((segment + 1) * own.length) / 4)
        await store('merged', { windowId, segmentId: String(segment), events: part })
      }
    }
    const all = await ask('merged', '/replay/events')
    expect(all).toMatchObject({ status: 200, contentType: 'application/x-ndjson' })
    expect(all.body).toBe(events.map(one => `${JSON.stringify(one)}\n`).join(''))
    const { body } = await ask('merged', '/replay/events?window=b')
    expect(body).toBe(
      ofWindow('b')
        .map(one => `${JSON.stringify(one)}\n`)
        .join(''),
    )
    expect(await ask('merged', '/replay/events?window=none')).toMatchObject({ status: 200, body: '' })
  })

  it('returns the events of a time, which begins within a chunk and ends before its end', async () => {
    const rfc3339 = (offsetMs: number) => new Date(START + offsetMs).toISOString()
    const numbersOf = async (query: string) =>
      (await ask('merged', `/replay/events?${query}`)).body
        .split('\n')
        .filter(line => line !== '')
        .map(line => JSON.parse(line).data.i)
    const from = (first: number, end: number) => Array.from({ length: end - first }, (_, i) => first + i)
    expect(await numbersOf(`from=${rfc3339(1_230)}&to=${rfc3339(1_500)}`)).toEqual(from(123, 150))
    expect(await numbersOf(`from=${rfc3339(3_985)}`)).toEqual([399])
    expect(await numbersOf(`to=${rfc3339(20)}`)).toEqual([0, 1])
    expect(await numbersOf(`window=b&from=${rfc3339(1_230)}&to=${rfc3339(1_290)}`)).toEqual([123, 126])
    expect(await ask('merged', `/replay/events?from=${rfc3339(10)}&to=${rfc3339(10)}`)).toMatchObject({ status: 400 })
  })

  it('is aborted instead of ended when an object is missing', async () => {
    const many = Array.from({ length: 2_000 }, (_, i) => event(i, 3, 'x'.repeat(100)))
    await store('broken', { windowId: 'w', segmentId: '0', events: many })
    const key = await store('broken', { windowId: 'w', segmentId: '1', events: [event(10_000)] })
    await objects.deleteMany([key])
    await expect(ask('broken', '/replay/events')).rejects.toThrow()
  })

  it('is 410 and names the chunk when the objects are gone before the first event', async () => {
    const first = await store('gone', { windowId: 'w', segmentId: '0', events: [event(0)] })
    const second = await store('gone', { windowId: 'w', segmentId: '1', events: [event(10_000)] })
    for (const key of [second, first]) {
      await objects.deleteMany([key])
      const { status, body } = await ask('gone', '/replay/events')
      expect(status).toBe(410)
      expect(JSON.parse(body)).toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining(key) })
    }
  })

  it('returns 503 while the object store is unavailable', async () => {
    const away = await startApi(services, DATABASE, {
      S3_ENDPOINT: 'http://127.0.0.1:1',
      AWS_ACCESS_KEY_ID: 'a',
      AWS_SECRET_ACCESS_KEY: 'b',
    })
    try {
      const response = await request(away.baseUrl, 'paged', '/replay/events', token)
      expect(response.status).toBe(503)
      expect(response.headers.get('retry-after')).toBe('5')
      expect(await response.json()).toMatchObject({ code: 'INGEST_INFRA_UNAVAILABLE', service: 'frontier-runtime' })
    } finally {
      await away.stop()
    }
  })

  function request(baseUrl: string, sessionId: string, path: string, bearer: string) {
    const url = `${baseUrl}/v3/sessions/${encodeURIComponent(sessionId)}${path}`
    return fetch(url, { headers: { authorization: `Bearer ${bearer}` }, signal: AbortSignal.timeout(30_000) })
  }

  async function ask(sessionId: string, path: string, bearer = token) {
    const response = await request(api.baseUrl, sessionId, path, bearer)
    return { status: response.status, contentType: response.headers.get('content-type'), body: await response.text() }
  }

  async function pageOf(sessionId: string, path: string) {
    const { status, body } = await ask(sessionId, path)
    expect(status, body).toBe(200)
    return replayPageSchema.parse(JSON.parse(body))
  }
})
