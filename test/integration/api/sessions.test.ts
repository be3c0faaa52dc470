import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { sessionAnswerSchema } from '../../../schemas/http/sessions/schemas.ts'
import { hashOfSession } from '../../../shared/ids/session-hash.ts'
import {
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { at, insertRows, ownerColumns } from '../../support/workspaces/session-rows.ts'

const DATABASE = `api_sessions_${process.pid}`
const NOW = Date.now()
const SESSION = 'session/ü 1'
const OWNER = { workspaceId: 'ws_1', surfaceId: 'srf_1', sessionId: SESSION }
const DEVICE = '5f0c54d2-6f14-4c2b-8f5f-2a5a3f5c0001'
const VISITOR = '5f0c54d2-6f14-4c2b-8f5f-2a5a3f5c0002'
const time = (offsetMs: number) => new Date(NOW + offsetMs).toISOString()

describe('a session', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let api: TestApi
  let token: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
    await putWorkspace(services.redisUrl, {
      id: 'ws_3',
      slug: 'narrow',
      userId: 'user_3',
      permissions: ['org:findings:read'],
    })
    api = await startApi(services, DATABASE)
    token = await signToken()
    const identity = (offsetMs: number, change: object) => ({
      ...ownerColumns(OWNER),
      received_at: at(NOW + offsetMs),
      identifier: 'anna',
      source_type: 'auth0',
      source_name: 'Auth0',
      traits: '{}',
      ...change,
    })
    await insertRows(client, 'session_identities', [
      identity(2_000, { identifier: 'bea', source_type: 'custom', source_name: 'Ours', traits: '{"plan":["a",1]}' }),
      identity(1_000, {
        email: 'anna@example.org',
        name: 'Anna',
        country: 'CH',
        avatar: 'https://x',
        device_id: DEVICE,
      }),
      identity(3_000, { workspace_id: 'ws_2', identifier: 'mallory' }),
    ])
    const heartbeat = (offsetMs: number, change: object) => ({
      ...ownerColumns(OWNER),
      received_at: at(NOW + offsetMs),
      ...change,
    })
    await insertRows(client, 'session_heartbeats', [
      heartbeat(0, { device_id: DEVICE, visitor_id: VISITOR, fp_hash: 'old' }),
      heartbeat(60_000, { device_id: DEVICE, fp_hash: 'new' }),
      heartbeat(30_000, {}),
      heartbeat(90_000, { workspace_id: 'ws_2' }),
      ...Array.from({ length: 130 }, (_, i) => heartbeat(i, { session_id: 'many', device_id: `d${i}` })),
    ])
    const span = {
      traceId: 'a'.repeat(32),
      sessionId: SESSION,
      startTimeUnixNano: 10n ** 18n,
      endTimeUnixNano: 10n ** 18n + 5n,
    }
    await insertSpans(client, [
      { ...span, spanId: '00000000000000a1' },
      { ...span, spanId: '00000000000000a2', statusCode: 2, endTimeUnixNano: 10n ** 18n + 9n },
      {
        ...span,
        spanId: '00000000000000b1',
        traceId: 'b'.repeat(32),
        startTimeUnixNano: 2n * 10n ** 18n,
        endTimeUnixNano: 2n * 10n ** 18n,
      },
      { ...span, spanId: '00000000000000c1', traceId: 'c'.repeat(32), workspaceId: 'ws_2' },
      { ...span, spanId: '00000000000000d1', traceId: 'd'.repeat(32), sessionId: 'spans only' },
    ])
    await insertExceptions(client, [{ findingId: `fnd_${'z'.repeat(26)}`, traceId: 'd'.repeat(32) }])
    await insertRows(client, 'exceptions', [
      {
        ...ownerColumns(OWNER),
        received_at: at(NOW),
        finding_id: `fnd_${'a'.repeat(26)}`,
        occurred_at_unix_nano: '1000000000000000000',
        source: 'span_event',
      },
    ])
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  it('has its user, devices, traces and findings', async () => {
    const { status, body } = await ask(SESSION)
    expect(status).toBe(200)
    expect(sessionAnswerSchema.parse(body)).toEqual(body)
    const [bea, anna] = [
      {
        identifier: 'bea',
        source: { type: 'custom', name: 'Ours' },
        traits: { plan: ['a', 1] },
        attachedAt: time(2_000),
      },
      {
        identifier: 'anna',
        source: { type: 'auth0', name: 'Auth0' },
        deviceId: DEVICE,
        avatar: 'https://x',
        email: 'anna@example.org',
        name: 'Anna',
        country: 'CH',
        traits: {},
        attachedAt: time(1_000),
      },
    ]
    expect(body).toEqual({
      session: {
        id: SESSION,
        identity: bea,
        identities: [bea, anna],
        identityCount: 2,
        devices: [
          {
            deviceId: DEVICE,
            visitorId: VISITOR,
            fpHash: 'new',
            firstHeartbeatAt: time(0),
            lastHeartbeatAt: time(60_000),
            heartbeatCount: 2,
          },
          { firstHeartbeatAt: time(30_000), lastHeartbeatAt: time(30_000), heartbeatCount: 1 },
        ],
        deviceCount: 2,
        firstSeenAt: time(0),
        lastSeenAt: expect.any(String),
        timesOfArrival: true,
        traces: [
          {
            id: 'b'.repeat(32),
            traceId: 'b'.repeat(32),
            startedAt: '2033-05-18T03:33:20.000000000Z',
            endedAt: '2033-05-18T03:33:20.000000000Z',
            spanCount: 1,
            errorCount: 0,
          },
          {
            id: 'a'.repeat(32),
            traceId: 'a'.repeat(32),
            startedAt: '2001-09-09T01:46:40.000000000Z',
            endedAt: '2001-09-09T01:46:40.000000009Z',
            spanCount: 2,
            errorCount: 1,
          },
        ],
        traceCount: 2,
        findings: [{ id: `fnd_${'a'.repeat(26)}`, occurrenceCount: 1, lastSeenAt: '2001-09-09T01:46:40.000000000Z' }],
        findingCount: 1,
        pages: [],
        pageCount: 0,
        replay: null,
        truncated: false,
      },
    })
  })

  it('names the requests of its pages that did not arrive', async () => {
    const hash = `unhex('${hashOfSession('numbered').toString('hex')}')`
    const row = (workspace: string, page: string, sequence: number, secondsAgo: number) =>
      `('${workspace}', 'srf_1', '${page} ${sequence}', [(${hash}, '${page}', ${sequence})], now() - ${secondsAgo})`
    const early = [2, 3, 3, 7].map(sequence => row('ws_1', 'early', sequence, 60))
    const late = Array.from({ length: 50 }, (_, i) => row('ws_1', 'late', 2 * i, 10))
    const rows = [...early, ...late, row('ws_1', 'whole', 0, 30), row('ws_2', 'whole', 5, 1)]
    // A view takes the numbers out of the log.
    const columns = 'workspace_id, surface_id, job_id, page_requests, received_at'
    await client.command({ query: `INSERT INTO ingest_log (${columns}) VALUES ${rows.join()}` })
    await insertRows(client, 'session_heartbeats', [
      { ...ownerColumns({ ...OWNER, sessionId: 'numbered' }), received_at: at(NOW) },
    ])
    const { session } = sessionAnswerSchema.parse((await ask('numbered')).body)
    expect(session.pageCount).toBe(3)
    expect(session.pages).toEqual([
      { id: 'late', receivedCount: 50, missingCount: 49, missing: Array.from({ length: 20 }, (_, i) => 2 * i + 1) },
      { id: 'whole', receivedCount: 1, missingCount: 0, missing: [] },
      { id: 'early', receivedCount: 3, missingCount: 5, missing: [0, 1, 4, 5, 6] },
    ])
  })

  it('counts entries that do not fit into a list', async () => {
    const { session } = sessionAnswerSchema.parse((await ask('many')).body)
    expect(session).toMatchObject({ deviceCount: 130, truncated: true, identity: null })
    expect(session.devices).toHaveLength(100)
    expect(session.devices[0]?.deviceId).toBe('d129')
    expect(session.firstSeenAt).toBe(time(0))
  })

  it('shows traits exactly as they were sent', async () => {
    const traits = '{"10":1,"2":9007199254740993, "__proto__":{"x":1e400}, "a":"ü\\u0000","a":[1.50]}'
    const row = { ...ownerColumns({ ...OWNER, sessionId: 'exact' }), received_at: at(NOW), identifier: 'i', traits }
    await insertRows(client, 'session_identities', [{ ...row, source_type: 'custom', source_name: 's' }])
    const url = `${api.baseUrl}/v3/sessions/exact`
    const text = await (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).text()
    expect(text.split(`"traits":${traits}`)).toHaveLength(3)
    expect(sessionAnswerSchema.parse(JSON.parse(text)).session.identity?.identifier).toBe('i')
  })

  it('is read with any number of large identities, of which the last are shown', async () => {
    const rows = Array.from({ length: 200 }, (_, i) => ({
      ...ownerColumns({ ...OWNER, sessionId: 'large' }),
      received_at: at(NOW + i),
      identifier: `i${i}`,
      source_type: 'custom',
      source_name: 's',
      traits: JSON.stringify({ text: 'x'.repeat(250_000) }),
    }))
    await insertRows(client, 'session_identities', rows)
    const { session } = sessionAnswerSchema.parse((await ask('large')).body)
    expect(session).toMatchObject({ identityCount: 200, truncated: true, identity: { identifier: 'i199' } })
    expect(session.identities.map(({ identifier }) => identifier)).toEqual(
      Array.from({ length: 16 }, (_, i) => `i${199 - i}`),
    )
    expect(session.firstSeenAt).toBe(time(0))
  })

  it('is known by its spans alone', async () => {
    expect((await ask('spans only')).body).toMatchObject({
      session: {
        firstSeenAt: '2001-09-09T01:46:40.000000000Z',
        lastSeenAt: '2001-09-09T01:46:40.000000005Z',
        traceCount: 1,
      },
    })
  })

  it('is read only within its workspace and with the permission for it', async () => {
    const other = await ask(SESSION, await signToken({ sub: 'user_2', org: 'globex' }))
    expect(other.body).toMatchObject({
      session: { identity: { identifier: 'mallory' }, identityCount: 1, traceCount: 1 },
    })
    const notFound = { status: 404, body: { code: 'NOT_FOUND', service: 'gateway' } }
    for (const id of ['unknown', 'session', '%20', 'x'.repeat(1_025)]) expect(await ask(id)).toMatchObject(notFound)
    expect(await ask('many', await signToken({ sub: 'user_2', org: 'globex' }))).toMatchObject(notFound)
    expect(await ask(SESSION, await signToken({ sub: 'x' }))).toMatchObject(notFound)
    expect(await ask(SESSION, '')).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING' } })
    expect(await ask(SESSION, await signToken({ sub: 'user_3', org: 'narrow' }))).toMatchObject({
      status: 403,
      body: { code: 'PERMISSION_DENIED', message: 'the permission org:sessions:read is required' },
    })
  })

  async function ask(sessionId: string, bearer = token) {
    const url = `${api.baseUrl}/v3/sessions/${encodeURIComponent(sessionId)}`
    const response = await fetch(url, { headers: { authorization: `Bearer ${bearer}` } })
    return { status: response.status, body: (await response.json()) as unknown }
  }
})
