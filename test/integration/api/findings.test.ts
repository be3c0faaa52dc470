import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectFindings } from '../../../clickhouse/queries/findings/select-findings.ts'
import { findingsPageSchema, findingTracesPageSchema } from '../../../schemas/http/findings/schemas.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import {
  createDatabase,
  insertExceptions,
  putWorkspace,
  START,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `api_findings_${process.pid}`
const SECOND = 1_000_000_000n
const MINUTE = 60n * SECOND

const findingId = (number: number) =>
  `fnd_${String(number)
    .replaceAll(/\d/g, digit => 'abcdefghij'[Number(digit)] ?? '')
    .padStart(26, 'z')}`
const traceId = (number: number) => number.toString(16).padStart(32, '0')

describe('the findings of a workspace', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let api: TestApi
  let token: string
  let otherToken: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
    await putWorkspace(services.redisUrl, { id: 'ws_3', slug: 'empty', userId: 'user_3' })
    await putWorkspace(services.redisUrl, { id: 'ws_4', slug: 'new', userId: 'user_4' })
    api = await startApi(services, DATABASE)
    token = await signToken()
    otherToken = await signToken({ sub: 'user_2', org: 'globex' })

    // Finding n is seen at minute n; the third also at second one, and in five traces. One insert stores all of them, so they
    // are listed in the order in which they were received.
    const receivedAt = Date.now() - 10_000
    const exceptions = Array.from({ length: 7 }, (_, i) => ({
      findingId: findingId(i + 1),
      traceId: traceId(i + 1),
      message: `message ${i + 1}`,
      receivedAt: receivedAt + i,
      ...at(BigInt(i + 1) * MINUTE),
    }))
    await insertExceptions(client, exceptions)
    await insertExceptions(client, [
      { findingId: findingId(3), traceId: traceId(100), type: 'OldError', message: 'old', ...late(1) },
      { findingId: findingId(3), traceId: traceId(3), type: 'OldError', message: 'old', ...late(2) },
      { findingId: findingId(3), traceId: traceId(101), ...late(3) },
      { findingId: findingId(3), traceId: traceId(102), ...late(4) },
      { findingId: findingId(3), traceId: traceId(0), ...late(5) },
      { findingId: findingId(1), traceId: traceId(1), workspaceId: 'ws_2', message: 'of globex', surfaceId: 'srf_2' },
    ])
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  it('are listed with all their fields by last arrival, whatever the clocks of clients say', async () => {
    const { status, body } = await ask('/v3/findings')
    expect(status).toBe(200)
    const { findings, nextCursor } = findingsPageSchema.parse(body)
    expect(findings.map(({ id }) => id)).toEqual([3, 7, 6, 5, 4, 2, 1].map(findingId))
    expect(nextCursor).toBeNull()
    expect(findings[0]).toEqual({
      id: findingId(3),
      surfaceId: 'srf_1',
      serviceName: 'shop',
      type: 'TypeError',
      message: 'x is not a function',
      firstSeenAt: '2026-09-21T14:13:21.000000000Z',
      lastSeenAt: '2026-09-21T14:16:20.000000000Z',
      occurrenceCount: 6,
      status: 'open',
    })
  })

  it('end correctly when the last page is exactly full', async () => {
    const { findings } = findingsPageSchema.parse((await ask('/v3/findings?limit=100')).body)
    const full = findingsPageSchema.parse((await ask(`/v3/findings?limit=${findings.length}`)).body)
    expect(full.nextCursor).toBeNull()
    expect(await ask('/v3/findings', await signToken({ sub: 'user_3', org: 'empty' }))).toEqual({
      status: 200,
      body: { findings: [], nextCursor: null },
    })
  })

  it('have the type and the message of the occurrence that was stored last, whatever its client says about its time', async () => {
    const dayAgo = Date.now() - DAY_MS
    const seen = (ms: number) => ({ occurredAtUnixNano: BigInt(ms) * 1_000_000n })
    const of = (number: number) => ({ workspaceId: 'ws_5', findingId: findingId(number), traceId: traceId(number) })
    await insertExceptions(client, [
      { ...of(1), type: 'SeenLast', receivedAt: dayAgo, ...seen(dayAgo) },
      { ...of(2), type: 'SeenInFuture', receivedAt: dayAgo, ...seen(dayAgo + 30 * DAY_MS) },
    ])
    // Another insert, so that an older day has rows of its own. Its occurrence waited in its client.
    await insertExceptions(client, [
      { ...of(1), type: 'ArrivedLast', receivedAt: Date.now(), ...seen(dayAgo - 5 * DAY_MS) },
    ])
    const findingIds = [findingId(1), findingId(2)]
    const key = { workspaceId: 'ws_5', findingIds, merges: new Map() }
    const findings = await selectFindings(client, key, AbortSignal.timeout(20_000))
    expect(Object.fromEntries(findings.map(({ id, type }) => [id, type]))).toEqual({
      [findingId(1)]: 'ArrivedLast',
      [findingId(2)]: 'SeenInFuture',
    })
  })

  it('are read one by one by members of their workspace', async () => {
    const own = await ask(`/v3/findings/${findingId(1)}`)
    expect(own.body).toMatchObject({ finding: { id: findingId(1), message: 'message 1', occurrenceCount: 1 } })
    const other = await ask(`/v3/findings/${findingId(1)}`, otherToken)
    expect(other.body).toMatchObject({ finding: { message: 'of globex', surfaceId: 'srf_2', occurrenceCount: 1 } })
    const { findings } = findingsPageSchema.parse((await ask('/v3/findings', otherToken)).body)
    expect(findings).toHaveLength(1)
  })

  it('list their traces page by page, the newest first', async () => {
    const path = `/v3/findings/${findingId(3)}/traces`
    const first = findingTracesPageSchema.parse((await ask(`${path}?limit=2`)).body)
    expect(first.traces).toEqual([
      { id: traceId(102), traceId: traceId(102), occurrenceCount: 1, lastSeenAt: '2026-09-21T14:13:24.000000000Z' },
      { id: traceId(101), traceId: traceId(101), occurrenceCount: 1, lastSeenAt: '2026-09-21T14:13:23.000000000Z' },
    ])
    const second = findingTracesPageSchema.parse((await ask(`${path}?limit=2&cursor=${first.nextCursor}`)).body)
    expect(second.traces).toMatchObject([
      { id: traceId(100) },
      { id: traceId(3), occurrenceCount: 2, lastSeenAt: '2026-09-21T14:16:20.000000000Z' },
    ])
    expect(second.nextCursor).toBeNull()
  })

  it('are not found when unknown, malformed, of another workspace, or requested by a non-member', async () => {
    const notFound = { status: 404, body: { code: 'FINDING_NOT_FOUND', service: 'api-findings' } }
    for (const suffix of ['', '/traces']) {
      for (const id of [findingId(99), 'fnd_1', '%27', `${findingId(1)}a`]) {
        expect(await ask(`/v3/findings/${id}${suffix}`)).toMatchObject(notFound)
      }
      expect(await ask(`/v3/findings/${findingId(2)}${suffix}`, otherToken)).toMatchObject(notFound)
      expect(await ask(`/v3/findings/${findingId(1)}${suffix}`, await signToken({ sub: 'x' }))).toMatchObject(notFound)
    }
    expect(await ask('/v3/findings', await signToken({ sub: 'x' }))).toMatchObject(notFound)
    expect(await ask('/v3/findings', '')).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING' } })
  })

  it('refuse an invalid limit or cursor', async () => {
    const invalid = (message: string) => ({
      status: 400,
      body: { code: 'REQUEST_INVALID', message, service: 'api-findings' },
    })
    for (const path of ['/v3/findings', `/v3/findings/${findingId(3)}/traces`]) {
      for (const limit of ['0', '101', '-1', 'x', '']) {
        expect(await ask(`${path}?limit=${limit}`)).toEqual(invalid('limit must be a whole number from 1 to 100'))
      }
      const forged = Buffer.from(JSON.stringify(['1; DROP TABLE', 'x'])).toString('base64url')
      for (const cursor of ['x', '', 'bnVsbA', forged]) {
        expect(await ask(`${path}?cursor=${cursor}`)).toEqual(invalid('cursor is invalid: start again without it'))
      }
      expect((await ask(`${path}?cursor=${'a'.repeat(600)}`)).status).toBe(400)
    }
  })

  /** Seconds after the start by the clock of the client; the occurrences were received in this order, after the first seven. */
  function late(seconds: number) {
    return { ...at(BigInt(seconds) * SECOND), receivedAt: Date.now() + seconds }
  }

  function at(afterNanos: bigint): { occurredAtUnixNano: bigint } {
    return { occurredAtUnixNano: START + afterNanos }
  }

  async function ask(path: string, bearer = token) {
    const headers = { authorization: `Bearer ${bearer}` }
    const response = await fetch(api.baseUrl + path, { headers })
    return { status: response.status, body: (await response.json()) as unknown }
  }
})
