import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
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
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'
import { storeChunk } from '../../support/workspaces/session-rows.ts'

const DATABASE = `api_shares_${process.pid}`
const FINDING = `fnd_${'a'.repeat(26)}`
const TRACE = '0af7651916cd43dd8448eb211c80319c'

/** The hostile workspace is ws_1 and holds what it can. The other one must be served nevertheless. */
describe('the share of a workspace', () => {
  const services = sharedServices()
  const sockets: Socket[] = []
  let client: ClickHouseClient
  let objects: ObjectStore
  let api: TestApi
  let hostile: string
  let other: string

  beforeAll(async () => {
    const { s3 } = services
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
    hostile = await signToken()
    other = await signToken({ sub: 'user_2', org: 'globex' })
    api = await startApi(services, DATABASE, {
      ...s3Settings(s3),
      REPLAY_STREAMS: '4',
    })
    const events = Array.from({ length: 20_000 }, (_, i) => ({ type: 3, data: 'x'.repeat(1_000), timestamp: i }))
    for (const workspaceId of ['ws_1', 'ws_2']) {
      const owner = { workspaceId, surfaceId: 'srf_1', sessionId: 's' }
      await storeChunk(client, objects, owner, { windowId: 'w', segmentId: '0', events })
      const span = { workspaceId, traceId: TRACE, statusMessage: 'm'.repeat(60_000) }
      const ids = Array.from({ length: 120 }, (_, i) => (i + 1).toString(16).padStart(16, '0'))
      await insertSpans(
        client,
        ids.map(spanId => ({ ...span, spanId })),
      )
      await insertExceptions(client, [{ workspaceId, findingId: FINDING, traceId: TRACE }])
    }
  })
  afterAll(async () => {
    for (const socket of sockets) socket.destroy()
    await api?.stop()
    objects?.close()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  /** Sends requests and reads no more than the heads of their responses. Returns the statuses. */
  async function holdOpen(count: number, path: string, bearer: string): Promise<number[]> {
    const { hostname, port } = new URL(api.baseUrl)
    const statuses = Array.from({ length: count }, async () => {
      const socket = connect(Number(port), hostname)
      sockets.push(socket)
      let head = ''
      socket.on('data', bytes => {
        head += bytes.toString('latin1', 0, 100)
        if (head.includes('\r\n')) socket.pause()
      })
      socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${bearer}\r\n\r\n`)
      await until('a response', () => head.includes('\r\n'), { deadlineMs: 30_000 })
      return Number(head.slice(9, 12))
    })
    return Promise.all(statuses)
  }

  function letGo(): void {
    for (const socket of sockets.splice(0)) socket.destroy()
  }

  it('leaves replay streams to others, and is free again when its clients leave', async () => {
    const statuses = await holdOpen(6, '/v3/sessions/s/replay/events', hostile)
    expect(statuses.filter(status => status === 200)).toHaveLength(2)
    const refused = await call(api.baseUrl, 'GET /v3/sessions/s/replay/events', { bearer: hostile })
    expect(refused).toMatchObject({ status: 429, body: { code: 'INGEST_BACKPRESSURE', service: 'frontier-runtime' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await call(api.baseUrl, 'GET /v3/sessions/s/replay/events', { bearer: other })).status).toBe(200)
    letGo()
    await until('the share to be free', async () => {
      const { status } = await call(api.baseUrl, 'GET /v3/sessions/s/replay/events', { bearer: hostile })
      return status === 200
    })
  })

  it('leaves responses that are not read to others', async () => {
    const path = `/v3/findings/${FINDING}/traces/${TRACE}`
    // A response of 7 MB each; half of 64 MiB belongs to one workspace at most.
    // Sockets hold some megabytes too, so more than four may get theirs.
    const statuses = await holdOpen(12, path, hostile)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => call(api.baseUrl, `GET ${path}`, { bearer: other })),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    letGo()
  })

  it('leaves requests in progress to others: one that waits is served before the many of the hostile one', async () => {
    const flood = Array.from({ length: 200 }, () =>
      call(api.baseUrl, 'GET /v3/findings?q=function', { bearer: hostile }),
    )
    const startedAt = performance.now()
    const { status } = await call(api.baseUrl, 'GET /v3/findings', { bearer: other })
    const otherMs = performance.now() - startedAt
    expect(status).toBe(200)
    const statuses = (await Promise.all(flood)).map(answer => answer.status)
    const floodMs = performance.now() - startedAt
    // A request that has waited almost all of its time is 503 when its query cannot end.
    for (const each of new Set(statuses)) expect([200, 429, 503]).toContain(each)
    expect(otherMs).toBeLessThan(floodMs / 2)
  })
})
