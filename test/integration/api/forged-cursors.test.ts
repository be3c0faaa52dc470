import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import {
  call,
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { insertLogs } from '../../support/workspaces/log-rows.ts'
import { at, insertRows, storeChunk } from '../../support/workspaces/session-rows.ts'

const DATABASE = `api_cursors_${process.pid}`
const TRACE = 'ab'.repeat(16)
const FINDINGS = ['a', 'b', 'c'].map(letter => `fnd_${letter.repeat(26)}`)

/** Values that a client may put into a cursor in the place of any other. */
const FORGED: readonly unknown[] = [
  -1,
  0.5,
  2 ** 53 - 1,
  2 ** 53,
  1e300,
  -(2 ** 63),
  '-1',
  '999999999999999',
  '9223372036854775807',
  '9999999999999999999',
  '18446744073709551615',
  '99999999999999999999',
  '',
  'x'.repeat(100),
  "' OR 1",
  '0001-01-01',
  '9999-12-31',
  null,
  [],
  [2 ** 53 - 1, 0],
  [0, 2 ** 53 - 1],
  {},
]

describe('a forged cursor', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let objects: ObjectStore
  let api: TestApi
  let bearer: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    await putWorkspace(services.redisUrl, { id: `ws_${process.pid}`, slug: `cursors-${process.pid}` })
    api = await startApi(services, DATABASE)
    bearer = await signToken({ org: `cursors-${process.pid}` })
    const workspaceId = `ws_${process.pid}`
    await insertExceptions(
      client,
      FINDINGS.flatMap(findingId =>
        ['1', '2', '3'].map(digit => ({ workspaceId, findingId, traceId: digit.repeat(32) })),
      ),
    )
    for (const segmentId of ['0', '1', '2']) {
      const owner = { workspaceId, surfaceId: 'srf_1', sessionId: 's' }
      const events = [{ type: 3, timestamp: Number(segmentId) }]
      await storeChunk(client, objects, owner, { windowId: 'w', segmentId, events })
    }
    await insertLogs(
      client,
      ['1', '2', '3'].map(body => ({ workspaceId, traceId: TRACE, body })),
    )
    for (const sessionId of ['t', 'u']) {
      const owner = { workspaceId, surfaceId: 'srf_1', sessionId }
      await storeChunk(client, objects, owner, { windowId: 'w', segmentId: '0', events: [{ type: 3, timestamp: 0 }] })
    }
    await insertRows(
      client,
      'metric_points',
      ['a', 'b', 'c'].map(name => ({
        ...{ workspace_id: workspaceId, metric_name: name, received_at: at(Date.now()) },
        time_unix_nano: `${Date.now() - 60_000}000000`,
      })),
    )
    await insertSpans(
      client,
      ['1', '2', '3'].map(digit => ({ workspaceId, traceId: digit.repeat(32), spanId: digit.repeat(16) })),
    )
    await insertRows(
      client,
      'ingest_log',
      ['srf_1', 'srf_2', 'srf_3'].map(surface_id => ({
        ...{ workspace_id: workspaceId, surface_id, received_at: at(Date.now()), signal: 'traces', payloads: 1 },
      })),
    )
    for (let i = 0; i < 3; i++) {
      await created('/v3/surfaces', { name: `surface ${i}` })
      await created('/v3/members', { userId: `user_of_cursors_${i}`, permissions: [] })
      await created(`/v3/findings/${FINDINGS[0]}/comments`, { text: `comment ${i}` })
    }
  })
  async function created(path: string, body: unknown): Promise<void> {
    const { status } = await call(api.baseUrl, `POST ${path}`, { bearer, body })
    expect({ path, status }).toEqual({ path, status: 201 })
  }

  afterAll(async () => {
    await api?.stop()
    objects?.close()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  it.each([
    '/v3/findings',
    `/v3/findings/${FINDINGS[0]}/traces`,
    '/v3/logs',
    `/v3/logs?trace=${TRACE}`,
    '/v3/sessions',
    '/v3/sessions/s/timeline',
    '/v3/metrics',
    '/v3/sessions/s/replay',
    '/v3/surfaces',
    '/v3/traces',
    '/v3/traces?hasFinding=true',
    '/v3/usage',
    `/v3/findings/${FINDINGS[0]}/activity`,
    '/v3/changes',
    '/v3/members',
  ])('of %s is a page or a refusal that names the cursor, whatever it contains', async path => {
    const page = `${path}${path.includes('?') ? '&' : '?'}limit=1`
    const { body } = await call(api.baseUrl, `GET ${page}`, { bearer })
    const { nextCursor } = body as { nextCursor: string }
    const values = JSON.parse(Buffer.from(nextCursor, 'base64url').toString()) as unknown[]
    expect(values.length).toBeGreaterThan(0)
    for (let at = 0; at < values.length; at++) {
      for (const forged of FORGED) {
        const cursor = Buffer.from(JSON.stringify(values.with(at, forged))).toString('base64url')
        const answer = await call(api.baseUrl, `GET ${page}&cursor=${cursor}`, { bearer })
        const seen = JSON.stringify({ at, forged, answer: answer.body })
        expect([200, 400], seen).toContain(answer.status)
        if (answer.status === 400) {
          expect(answer.body, seen).toMatchObject({
            code: 'REQUEST_INVALID',
            message: expect.stringMatching(/^cursor /),
          })
        }
      }
    }
  })

  it('is refused if its snapshot is in the future', async () => {
    const { body } = await call(api.baseUrl, 'GET /v3/findings?limit=1', { bearer })
    const { nextCursor } = body as { nextCursor: string }
    const values = JSON.parse(Buffer.from(nextCursor, 'base64url').toString()) as unknown[]
    const cursor = Buffer.from(JSON.stringify(values.with(4, [Date.now() + DAY_MS, 0]))).toString('base64url')
    const message = 'cursor is invalid: start again without it'
    expect(await call(api.baseUrl, `GET /v3/findings?limit=1&cursor=${cursor}`, { bearer })).toMatchObject({
      status: 400,
      body: { message },
    })
  })

  it.each(['x'.repeat(513), 'a b', 'ä', ''])('is refused with its rule: %j', async text => {
    const path = `/v3/findings?cursor=${encodeURIComponent(text)}`
    const { status, body } = await call(api.baseUrl, `GET ${path}`, { bearer })
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/^cursor (must|is invalid)/) },
    })
  })
})
