import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { type FindingsPage, findingsPageSchema } from '../../../schemas/http/findings/schemas.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import {
  call,
  createDatabase,
  insertExceptions,
  insertSpans,
  moveVariant,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `moved_findings_${process.pid}`
const idOf = (letter: string) => `fnd_${letter.repeat(26)}`
const traceId = (number: number) => number.toString(16).padStart(32, '0')
const SPAN = '00000000000000aa'

describe('findings whose variants have moved', () => {
  const services = sharedServices()
  /** The middle of an hour of yesterday, so that hours before and after it are of the same day. */
  const noon = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS / 2
  let client: ClickHouseClient
  let api: TestApi
  let bearer: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    api = await startApi(services, DATABASE)
    bearer = await signToken()
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  const ask = (operation: string, body?: object) => call(api.baseUrl, operation, { bearer, ...(body && { body }) })
  async function read(path: string): Promise<Record<string, unknown>> {
    const { status, body } = await ask(`GET /v3/findings/${path}`)
    expect({ path, status }).toEqual({ path, status: 200 })
    return body as Record<string, unknown>
  }
  async function one(letter: string) {
    const { finding } = await read(idOf(letter))
    return finding as {
      id: string
      occurrenceCount: number
      message: string
      seenIn: object
      occurrences: { counts: number[] }
    }
  }
  const sum = (counts: readonly number[] = []) => counts.reduce((total, count) => total + count, 0)
  async function list(query = ''): Promise<FindingsPage> {
    const { status, body } = await ask(`GET /v3/findings?${query}`)
    expect({ query, status, body }).toMatchObject({ status: 200 })
    return findingsPageSchema.parse(body)
  }
  const counted = ({ findings }: FindingsPage) =>
    Object.fromEntries(findings.map(({ id, occurrenceCount }) => [id[4], occurrenceCount]))

  /** Runs checks on the parts as they were inserted, and on merged ones. */
  async function inBoth(check: () => Promise<void>): Promise<void> {
    await check()
    for (const table of ['exceptions', 'findings', 'finding_buckets']) {
      await client.command({ query: `OPTIMIZE TABLE ${DATABASE}.${table} FINAL` })
    }
    await check()
  }

  describe('one of two variants', () => {
    const surface = 'surface=srf_two'
    const thrown = { surfaceId: 'srf_two', sessionId: 'both', spanId: SPAN }
    const stays = { findingId: idOf('a'), type: 'Stays', serviceVersion: '1', ...thrown }
    const moves = { findingId: idOf('a'), type: 'Moves', serviceVersion: '2', ...thrown }

    beforeAll(async () => {
      await insertSpans(
        client,
        [1, 2].map(n => ({ traceId: traceId(n), spanId: SPAN, sessionId: 'both' })),
      )
      await insertExceptions(client, [
        { ...stays, traceId: traceId(1), message: 'first' },
        { ...moves, traceId: traceId(2), message: 'second' },
        { ...moves, traceId: traceId(2), message: 'third' },
      ])
      await moveVariant(client, { ...moves, traceId: traceId(2) }, { findingId: idOf('b'), rank: 1n })
    })

    it('leaves its counts, its times, its places and its traces', () =>
      inBoth(async () => {
        const page = await list(`${surface}&occurrences=true`)
        expect(counted(page)).toEqual({ a: 1, b: 2 })
        const counts = page.occurrences?.counts.map(sum) ?? []
        expect(Object.fromEntries(page.findings.map(({ id }, i) => [id[4], counts[i]]))).toEqual({ a: 1, b: 2 })
        expect(page.findings.map(({ id, type, message }) => [id[4], type, message]).sort()).toEqual([
          ['a', 'Stays', 'first'],
          ['b', 'Moves', 'third'],
        ])
        const [a, b] = [await one('a'), await one('b')]
        expect([a.occurrenceCount, sum(a.occurrences.counts), b.occurrenceCount, sum(b.occurrences.counts)]).toEqual([
          1, 1, 2, 2,
        ])
        expect(a.seenIn).toMatchObject({ serviceVersions: ['1'], approximateTraceCount: 1, surfaceIds: ['srf_two'] })
        expect(b.seenIn).toMatchObject({ serviceVersions: ['2'], approximateTraceCount: 1, approximateSessionCount: 1 })
        expect(await read(`${idOf('a')}/traces`)).toMatchObject({ traces: [{ id: traceId(1), occurrenceCount: 1 }] })
        expect(await read(`${idOf('b')}/traces`)).toMatchObject({ traces: [{ id: traceId(2), occurrenceCount: 2 }] })
      }))

    it('is found by its text and its time, and names the finding in its trace and its session', () =>
      inBoth(async () => {
        const since = new Date(Date.now() - HOUR_MS).toISOString()
        expect(counted(await list(`${surface}&q=third`))).toEqual({ b: 2 })
        expect(counted(await list(`${surface}&q=stays`))).toEqual({ a: 1 })
        for (const to of ['', `&to=${new Date(Date.now() + MINUTE_MS).toISOString()}`]) {
          expect(counted(await list(`${surface}&from=${since}${to}`))).toEqual({ a: 1, b: 2 })
        }
        const { body: spans } = await ask(`POST /v3/traces/${traceId(2)}/spans`, { spanIds: [SPAN] })
        expect(spans).toMatchObject({ spans: [{ findingIds: [idOf('b')] }] })
        const { body: session } = await ask('GET /v3/sessions/both')
        expect(session).toMatchObject({ session: { findingCount: 2 } })
        const { findings } = (session as { session: { findings: { id: string; occurrenceCount: number }[] } }).session
        expect(Object.fromEntries(findings.map(({ id, occurrenceCount }) => [id[4], occurrenceCount]))).toEqual({
          a: 1,
          b: 2,
        })
        const { body: timeline } = await ask('GET /v3/sessions/both/timeline?kinds=finding')
        const entries = (timeline as { entries: { findingId: string }[] }).entries
        expect(entries.map(({ findingId }) => findingId[4]).sort()).toEqual(['a', 'b', 'b'])
        const { body: sessions } = await ask('GET /v3/sessions')
        expect(sessions).toMatchObject({ sessions: [{ id: 'both', findingCount: 2 }] })
      }))

    it('keeps its trace under the id that a link may have', async () => {
      expect((await ask(`GET /v3/findings/${idOf('a')}/traces/${traceId(2)}`)).status).toBe(200)
      expect((await ask(`GET /v3/findings/${idOf('b')}/traces/${traceId(2)}`)).status).toBe(200)
      expect((await ask(`GET /v3/findings/${idOf('b')}/traces/${traceId(1)}`)).status).toBe(404)
    })
  })

  describe('the only variant, twice', () => {
    const thrown = { findingId: idOf('c'), traceId: traceId(3), surfaceId: 'srf_twice' }

    beforeAll(async () => {
      await insertSpans(client, [{ traceId: traceId(3), spanId: SPAN }])
      await insertExceptions(client, [thrown])
      // The later decision has the higher rank, whichever is stored first.
      await moveVariant(client, thrown, { findingId: idOf('e'), rank: 2n })
      await moveVariant(client, thrown, { findingId: idOf('d'), rank: 1n })
    })

    it('leads each of its ids to the finding that it is now', () =>
      inBoth(async () => {
        expect(counted(await list('surface=srf_twice'))).toEqual({ e: 1 })
        for (const letter of ['c', 'd', 'e']) {
          expect(await one(letter)).toMatchObject({ id: idOf('e'), occurrenceCount: 1 })
          expect(await read(`${idOf(letter)}/traces`)).toMatchObject({ traces: [{ id: traceId(3) }] })
          expect(await read(`${idOf(letter)}/traces/${traceId(3)}`)).toMatchObject({ traceId: traceId(3) })
        }
      }))

    it('takes changes, comments and their activity by each of them', async () => {
      const changed = await ask(`PATCH /v3/findings/${idOf('c')}`, { status: 'ignored' })
      expect(changed).toMatchObject({ status: 200, body: { finding: { id: idOf('e'), status: 'ignored' } } })
      expect((await ask(`POST /v3/findings/${idOf('d')}/comments`, { text: 'seen' })).status).toBe(201)
      for (const letter of ['c', 'd', 'e']) {
        expect(await read(`${idOf(letter)}/activity`)).toMatchObject({
          activity: [{ action: 'commented', text: 'seen' }, { action: 'ignored' }],
        })
        expect(await one(letter)).toMatchObject({ status: 'ignored' })
      }
      expect(counted(await list('surface=srf_twice&status=ignored'))).toEqual({ e: 1 })
      expect(counted(await list('surface=srf_twice&status=open'))).toEqual({})
    })

    it('does not lead an unknown id to any', async () => {
      for (const path of ['', '/traces', '/activity']) {
        expect((await ask(`GET /v3/findings/${idOf('q')}${path}`)).status).toBe(404)
      }
    })
  })

  describe('a variant of several days', () => {
    const thrown = { findingId: idOf('f'), surfaceId: 'srf_days', serviceVersion: '1', traceId: traceId(0) }
    const at = (ms: number) => ({ receivedAt: ms, storedAt: ms, traceId: traceId(ms) })

    beforeAll(async () => {
      const other = { ...thrown, findingId: idOf('g'), type: 'Other' }
      await insertExceptions(client, [
        { ...thrown, ...at(noon - DAY_MS) },
        { ...thrown, ...at(noon) },
        { ...other, ...at(noon - MINUTE_MS) },
      ])
      await moveVariant(client, thrown, { findingId: idOf('h'), rank: 1n })
      // It occurs again, and the worker did not know that it has moved.
      await insertExceptions(client, [{ ...thrown, ...at(Date.now() - 1) }])
    })

    it('is in its finding on all days, in whichever time a list looks', () =>
      inBoth(async () => {
        const iso = (ms: number) => new Date(ms).toISOString()
        expect(counted(await list('surface=srf_days'))).toEqual({ h: 3, g: 1 })
        expect(counted(await list('surface=srf_days&limit=1'))).toEqual({ h: 3 })
        expect(counted(await list(`surface=srf_days&from=${iso(Date.now() - HOUR_MS)}`))).toEqual({ h: 3 })
        expect(counted(await list(`surface=srf_days&from=${iso(noon)}&to=${iso(noon + 1)}`))).toEqual({ h: 3 })
        expect(counted(await list(`surface=srf_days&to=${iso(noon)}`))).toEqual({ h: 3, g: 1 })
        expect(await one('f')).toMatchObject({ id: idOf('h'), occurrenceCount: 3, seenIn: { serviceVersions: ['1'] } })
      }))

    it('regresses when it occurs in a new version that has not moved', async () => {
      const resolved = await ask(`PATCH /v3/findings/${idOf('h')}`, { status: 'resolved' })
      expect(resolved).toMatchObject({ status: 200, body: { finding: { status: 'resolved' } } })
      await insertExceptions(client, [{ ...thrown, ...at(Date.now() + 1) }])
      expect(await one('h')).toMatchObject({ status: 'resolved', occurrenceCount: 4 })
      const later = { ...thrown, serviceVersion: '2', ...at(Date.now() + 1) }
      await insertExceptions(client, [later])
      await moveVariant(client, later, { findingId: idOf('h'), rank: 1n })
      await inBoth(async () => {
        expect(await one('h')).toMatchObject({ status: 'regressed', regressedIn: ['2'], occurrenceCount: 5 })
        expect(counted(await list('surface=srf_days&status=regressed'))).toEqual({ h: 5 })
      })
    })
  })

  it('are on the pages of a list once each, while parts merge and occurrences arrive', async () => {
    // One moment for all, because each must be stored before the next.
    const now = Date.now()
    const thrown = (i: number) => ({
      ...{ findingId: idOf('klmnop'[i % 6] ?? ''), type: `T${i}`, surfaceId: 'srf_pages', traceId: traceId(0) },
      ...{ receivedAt: noon + i, storedAt: i < 6 ? noon + i : now - i },
    })
    await insertExceptions(
      client,
      Array.from({ length: 12 }, (_, i) => thrown(i)),
    )
    for (const i of [0, 6]) {
      await moveVariant(client, thrown(i), { findingId: idOf('x'), rank: 1n })
    }
    const seen: string[] = []
    let cursor = ''
    for (let i = 0; i < 6; i++) {
      const { findings, nextCursor } = await list(`surface=srf_pages&limit=1${cursor}`)
      seen.push(...findings.map(({ id }) => id))
      cursor = `&cursor=${nextCursor}`
      expect(nextCursor === null).toBe(i === 5)
      await insertExceptions(client, [
        { ...thrown(i), storedAt: 0 },
        { ...thrown(11 - i), storedAt: 0 },
      ])
      await inBoth(async () => {})
    }
    expect(seen).toEqual(['x', 'l', 'm', 'n', 'o', 'p'].map(idOf))
    expect((await list('surface=srf_pages')).findings.map(({ id }) => id).sort()).toEqual(
      ['l', 'm', 'n', 'o', 'p', 'x'].map(idOf),
    )
  })
})
