import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { hashOfSession } from '../../../shared/ids/session-hash.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { createPageClaims } from '../../../workers/queue/page-claims.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

// Claims are made by claim-page-requests.lua.

/** A request of a page. */
interface Sent {
  readonly session?: string
  readonly page: string
  readonly sequence: number | string
  readonly key?: string
  /** Sends a heartbeat instead of a span with this name. */
  readonly heartbeat?: boolean
  readonly name?: string
}

describe('requests that a page has numbered', () => {
  let redis: Redis
  let edge: TestEdge
  let database: TestDatabase
  let key: string
  let session: string
  let sessions = 0

  beforeAll(async () => {
    redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
    await redis.flushdb()
    key = await issueKey(createDirectory(redis))
    database = await createTestDatabase(services.clickhouseUrl, `page_requests_${process.pid}`)
    edge = await startEdge(redisUrl)
  })
  afterAll(async () => {
    await edge?.stop()
    await database?.drop()
    redis?.disconnect()
  })
  beforeEach(() => {
    session = `session-${++sessions}`
  })

  async function send({ page, sequence, heartbeat, name = 'GET /', key: other, ...given }: Sent) {
    const query = new URLSearchParams({ session: given.session ?? session, page, sequence: String(sequence) })
    const spans = [
      { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), name, startTimeUnixNano: '1', endTimeUnixNano: '2' },
    ]
    const body = heartbeat ? { sessionId: session } : { resourceSpans: [{ scopeSpans: [{ spans }] }] }
    const response = await fetch(`${edge.baseUrl}${heartbeat ? '/v3/session' : '/v1/traces'}?${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': other ?? key },
      body: JSON.stringify(body),
    })
    return {
      status: response.status,
      receipt: response.headers.get('x-receipt-id'),
      body: (await response.json()) as { message?: string },
    }
  }

  /** Lets workers process all that is accepted, and stops them. */
  async function settle(settled: number): Promise<void> {
    const pools = startPools(
      ['traces', 'sessions', 'exceptions', 'span-stats'],
      { ...services, redisUrl },
      database.name,
    )
    try {
      await until('all requests are settled', async () => {
        const [row] = await database.rows<{ payloads: number }>('SELECT sum(payloads) AS payloads FROM ingest_log')
        return Number(row?.payloads) >= settled
      })
    } finally {
      await pools.stop()
    }
  }

  const settledBefore = async () => {
    const [row] = await database.rows<{ payloads: number }>('SELECT sum(payloads) AS payloads FROM ingest_log')
    return Number(row?.payloads ?? 0)
  }
  const spanNames = async () =>
    (await database.rows<{ name: string }>('SELECT name FROM spans ORDER BY name')).map(({ name }) => name)
  const numbers = async () => {
    const hash = hashOfSession(session).toString('hex')
    const rows = await database.rows<{ page_id: string; sequence: number }>(
      `SELECT page_id, sequence FROM page_requests WHERE session_hash = unhex('${hash}') ORDER BY page_id, sequence`,
    )
    return rows.map(({ page_id, sequence }) => `${page_id} ${sequence}`)
  }

  it('are stored once, in one batch and in later ones', async () => {
    const before = await settledBefore()
    await send({ page: 'once', sequence: 0, name: 'once-0' })
    await send({ page: 'once', sequence: 0, name: 'once-0 again' })
    await send({ page: 'once', sequence: 2, name: 'once-2' })
    await send({ page: 'once', sequence: 1, heartbeat: true })
    await settle(before + 4)
    await send({ page: 'once', sequence: 2, name: 'once-2 again' })
    await send({ page: 'once', sequence: 1, heartbeat: true })
    await send({ page: 'other', sequence: 2, name: 'once-2 of another page' })
    await settle(before + 7)
    const names = (await spanNames()).filter(name => name.startsWith('once'))
    expect(names).toEqual(['once-0', 'once-2', 'once-2 of another page'])
    const beats = `SELECT count() AS n FROM session_heartbeats WHERE session_id = '${session}'`
    expect(await database.rows(beats)).toEqual([{ n: 1 }])
    expect(await numbers()).toEqual(['once 0', 'once 1', 'once 2', 'other 2'])
    const counted = await database.rows(
      `SELECT sum(rejected['repeated_request']) AS repeated, sum(length(refused)) AS refused FROM ingest_log`,
    )
    expect(counted).toEqual([{ repeated: 3, refused: 0 }])
  })

  it('are not mistaken for those of another surface', async () => {
    const before = await settledBefore()
    const other = await issueKey(createDirectory(redis), { surfaceId: 'srf_2' })
    await send({ page: 'shared', sequence: 0, name: 'shared by surface 1' })
    await send({ page: 'shared', sequence: 0, name: 'shared by surface 2', key: other })
    await settle(before + 2)
    expect((await spanNames()).filter(name => name.startsWith('shared'))).toHaveLength(2)
  })

  it('are stored when a worker begins again with them', async () => {
    const before = await settledBefore()
    await send({ page: 'again', sequence: 0, name: 'again-0' })
    const { repeated } = await claimTwice(redis)
    await settle(before + 1)
    expect(repeated).toEqual([[], [], [0]])
    expect(await spanNames()).toContain('again-0')
  })

  it.each([
    [{ page: 'p', sequence: '' }, /^sequence must be a whole number from 0 to 99999$/],
    [{ page: 'p', sequence: 100_000 }, /^sequence must be a whole number from 0 to 99999$/],
    [{ page: 'p', sequence: '1e3' }, /^sequence must be/],
    [{ page: 'a/b', sequence: 0 }, /^page must be 1 to 64 letters, digits, _ and -$/],
    [{ page: 'p', sequence: 0, session: '' }, /^session must have 1 to 1024 characters$/],
    [{ page: 'p', sequence: -1, heartbeat: true }, /^sequence must be/],
  ])('are refused if a number breaks its rule: %j', async (sent, message) => {
    const { status, body } = await send(sent)
    expect(status).toBe(400)
    expect(body.message).toMatch(message)
  })
})

/** Claims the number of a request two times, and once for another request. */
async function claimTwice(redis: Redis) {
  const claims = createPageClaims(redis)
  const frame = (receipt: string): PayloadFrame => ({
    ...{ workspaceId: 'ws_claims', surfaceId: 'srf_1', receivedAtMs: Date.now(), receipt, body: Buffer.alloc(0) },
    ...{ contentType: 'application/json', contentEncoding: 'identity' },
    attributes: JSON.stringify({ pageRequest: { session: 's', page: 'p', sequence: 7 } }),
  })
  const repeated: number[][] = []
  for (const receipt of ['a', 'a', 'b']) repeated.push([...(await claims.repeated([frame(receipt.repeat(16))]))])
  return { repeated }
}
