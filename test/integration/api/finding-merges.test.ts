import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import {
  findingAnswerSchema,
  findingChangedSchema,
  findingsPageSchema,
  findingTracesPageSchema,
} from '../../../schemas/http/findings/schemas.ts'
import { findingActivityPageSchema } from '../../../schemas/http/findings/work.ts'
import { type FindingWork, MERGED_MAX } from '../../../schemas/records/finding-work.ts'
import { DAY_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { activityBytes, loadActivity } from '../../../shared/directory/findings/activity.ts'
import { FINDING_WORK_MAX } from '../../../shared/directory/findings/finding-work-store.ts'
import { untouchedFinding, writeFindingWork } from '../../../shared/directory/findings/write-finding-work.ts'
import { commitIf } from '../../../shared/directory/transaction.ts'
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

const DATABASE = `finding_merges_${process.pid}`
const services = sharedServices()
const redisUrl = `${services.redisUrl}/11`
const NOW = Date.now()

/** A finding of each test: the word, filled up. */
const idOf = (word: string) => `fnd_${word.replaceAll(/[^a-z]/g, '').padEnd(26, 'q')}`
const nanos = (ms: number) => BigInt(ms) * 1_000_000n
let traces = 0
const newTrace = () => (++traces).toString(16).padStart(32, '0')

type Occurrence = Partial<Parameters<typeof insertExceptions>[1][number]>

describe('merged findings', () => {
  let redis: Redis
  let directory: Directory
  let client: ClickHouseClient
  let api: TestApi
  let bearer: string

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    directory = createDirectory(redis)
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_1' })
    api = await startApi({ ...services, redisUrl }, DATABASE)
    bearer = await signToken()
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
    redis?.disconnect()
  })

  it('are one finding with all their occurrences, under each of their ids', async () => {
    const [first, second, third] = await findings('joined', 3, 2, 1)
    // The finding that was seen first stays, whichever is named first.
    expect(await merge(third, [second])).toMatchObject({ id: second, occurrenceCount: 3 })
    expect(await merge(third, [first])).toMatchObject({ id: first, occurrenceCount: 6, status: 'open' })
    for (const id of [first, second, third]) {
      const finding = await read(id)
      expect(finding).toMatchObject({ id: first, occurrenceCount: 6, seenIn: { approximateTraceCount: 6 } })
      expect([...(finding.mergedFindingIds ?? [])].sort()).toEqual([second, third].sort())
      expect(finding.occurrences.counts.reduce((sum, count) => sum + count)).toBe(6)
      expect(finding.lastOccurrences).toHaveLength(6)
      expect(finding.message).toBe('third')
      const page = findingTracesPageSchema.parse((await ask(`GET /v3/findings/${id}/traces?limit=100`)).body)
      expect(page.traces).toHaveLength(6)
    }
    // Merging again what is merged changes nothing.
    const before = await activityOf(first)
    expect(await merge(first, [third, second])).toMatchObject({ id: first, occurrenceCount: 6 })
    expect(await activityOf(first)).toEqual(before)
  })

  it('are listed once, on every page and by every filter, with the occurrences of all', async () => {
    const [first, second] = await findings('listed', 2, 3)
    const other = await occur('listed other', 1)
    await occur('listed', 1, { findingId: second, serviceName: 'checkout', message: 'peculiar' })
    await merge(first, [second])
    const ids = async (query: string) => (await list(query)).findings.map(({ id }) => id)
    const all = await ids('limit=100')
    expect(all.filter(id => [first, second].includes(id))).toEqual([first])
    const paged: string[] = []
    for (let cursor = ''; ; ) {
      const { findings: shown, nextCursor } = await list(`limit=1${cursor}`)
      paged.push(...shown.map(({ id }) => id))
      if (nextCursor === null) break
      cursor = `&cursor=${nextCursor}`
    }
    expect(paged).toEqual(all)
    expect(await ids('q=peculiar')).toEqual([first])
    expect(await ids('service=checkout')).toEqual([first])
    const hour = [NOW - 60 * MINUTE_MS, NOW + 60 * MINUTE_MS].map(ms => new Date(ms).toISOString())
    expect(await ids(`from=${hour[0]}&to=${hour[1]}&q=peculiar`)).toEqual([first])
    for (const times of ['received', 'occurred']) {
      const { findings: shown, occurrences } = await list(`limit=100&occurrences=true&times=${times}`)
      const sums = shown.map(({ id }, i) => [id, occurrences?.counts[i]?.reduce((sum, count) => sum + count)])
      expect(sums).toContainEqual([first, 6])
      expect(sums).toContainEqual([other, 1])
    }
    await change(first, { status: 'resolved' })
    expect(await ids('limit=100&status=resolved')).toContain(first)
    expect(await ids('limit=100&status=open')).not.toContain(first)
    expect(await ids('limit=100&status=open')).not.toContain(second)
    await change(second, { status: 'ignored' })
    expect(await read(first)).toMatchObject({ status: 'ignored' })
    expect(await ids('limit=100&status=ignored')).toEqual([first])
  })

  it('are named by the finding that stays in sessions, timelines, spans and traces', async () => {
    const [first, second] = await findings('named', 1, 0)
    const traceId = newTrace()
    const [sessionId, spanId] = ['session-named', '00000000000000aa']
    await insertSpans(client, [{ traceId, spanId, sessionId }])
    await occur('named', 1, { findingId: second, traceId, spanId, sessionId })
    await occur('named', 1, { findingId: first, traceId, spanId, sessionId })
    await merge(first, [second])
    const session = (await ask(`GET /v3/sessions/${sessionId}`)).body as { session: { findings: { id: string }[] } }
    expect(session.session).toMatchObject({ findingCount: 1, findings: [{ id: first, occurrenceCount: 2 }] })
    expect((await ask('GET /v3/sessions?limit=10')).body).toMatchObject({
      sessions: [{ id: sessionId, findingCount: 1 }],
    })
    const timeline = (await ask(`GET /v3/sessions/${sessionId}/timeline?kinds=finding`)).body
    expect((timeline as { entries: object[] }).entries).toMatchObject([{ findingId: first }, { findingId: first }])
    const spans = await call(api.baseUrl, `POST /v3/traces/${traceId}/spans`, { bearer, body: { spanIds: [spanId] } })
    expect(spans.body).toMatchObject({ spans: [{ findingIds: [first] }] })
    for (const id of [first, second]) {
      expect((await ask(`GET /v3/findings/${id}/traces/${traceId}`)).status).toBe(200)
    }
  })

  it('have the comments and the activity of all, which stay when one is split off', async () => {
    const [first, second] = await findings('commented', 1, 1)
    await comment(first, 'on the first')
    await comment(second, 'on the second')
    await change(second, { status: 'resolved' })
    expect(await merge(second, [first])).toMatchObject({ id: first, status: 'open' })
    await comment(second, 'on both')
    const texts = async (id: string) => (await activityOf(id)).flatMap(({ text }) => text ?? [])
    expect(await texts(first)).toEqual(['on both', 'on the second', 'on the first'])
    expect(await activityOf(second)).toEqual(await activityOf(first))
    const [work] = await directory.findingWork('ws_1', [first])
    expect(work?.activityBytes).toBe(
      activityBytes(await loadActivity(redis, { workspaceId: 'ws_1', findingId: first })),
    )

    expect(await split(first, second)).toMatchObject({ id: second, status: 'open', splitFrom: first })
    expect(await texts(first)).toEqual(['on both', 'on the second', 'on the first'])
    expect((await activityOf(first)).map(({ action, findingId }) => [action, findingId])).toEqual([
      ['split_off', second],
      ['commented', undefined],
      ['merged', second],
      ['resolved', undefined],
      ['commented', undefined],
      ['commented', undefined],
    ])
    expect(await activityOf(second)).toMatchObject([{ action: 'split', findingId: first }])
  })

  it('are findings of their own again after a split, with their own occurrences', async () => {
    const [first, second, third] = await findings('split', 1, 2, 3)
    await merge(first, [second, third])
    expect(await split(third, second)).toMatchObject({ id: second, occurrenceCount: 2, splitFrom: first })
    expect(await read(first)).toMatchObject({ occurrenceCount: 4, mergedFindingIds: [third] })
    expect(await read(second)).toMatchObject({ id: second, occurrenceCount: 2, status: 'open', splitFrom: first })
    const shown = (await list('limit=100')).findings.map(({ id }) => id)
    expect(shown).toEqual(expect.arrayContaining([first, second]))
    // Splitting it again changes nothing; merging it again ends that it was split.
    const before = await activityOf(second)
    expect(await split(first, second)).toMatchObject({ id: second })
    expect(await activityOf(second)).toEqual(before)
    expect(await merge(second, [third])).not.toHaveProperty('splitFrom')
    expect(await read(second)).toMatchObject({ id: first, occurrenceCount: 6 })
  })

  it('are regressed when one of them occurs in a later version', async () => {
    const [first, second] = await findings('regressed', 1, 0)
    await occur('regressed', 1, { findingId: second, serviceVersion: '1.0.0' })
    await merge(first, [second])
    expect(await change(first, { status: 'resolved' })).toMatchObject({ status: 'resolved' })
    const later = { findingId: second, receivedAt: Date.now() + 1_000 }
    await occur('regressed', 1, { ...later, serviceVersion: '1.0.0' })
    expect(await read(first)).toMatchObject({ status: 'resolved' })
    await occur('regressed', 1, { ...later, serviceVersion: '1.1.0' })
    expect(await read(first)).toMatchObject({ status: 'regressed', regressedIn: ['1.1.0'] })
    expect((await list('status=regressed')).findings.map(({ id }) => id)).toEqual([first])
    await split(first, second)
    expect(await read(first)).toMatchObject({ status: 'resolved' })
    expect(await read(second)).toMatchObject({ status: 'open' })
    await merge(first, [second])
    const ignored = await change(second, { status: 'ignored', ignoreOccurrences: 2 })
    expect(ignored).toMatchObject({ id: first, occurrencesUntilOpen: 2 })
    await occur('regressed', 1, later)
    expect(await read(first)).toMatchObject({ occurrencesUntilOpen: 1 })
  })

  it('lose and double nothing when members merge, split and comment at once', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, (_, i) => occur(`at once ${'abcdefgh'[i]}`, 1, early(i))))
    const [first = ''] = ids
    const some = ids.slice(1)
    const answers = await Promise.all([
      ...some.map((id, i) => tryMerge(id, [ids[i] ?? ''])),
      ...ids.map(id => call(api.baseUrl, `POST /v3/findings/${id}/comments`, { bearer, body: { text: id } })),
    ])
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 201]))
    expect(await read(first)).toMatchObject({ id: first, occurrenceCount: 8 })
    const merges = await directory.findingMerges('ws_1')
    expect(some.map(id => merges.get(id))).toEqual(some.map(() => first))
    const activity = await activityOf(first)
    expect(activity.flatMap(({ text }) => text ?? []).sort()).toEqual([...ids].sort())
    // Whether a merge took others along decides how many there were.
    expect(activity.filter(({ action }) => action === 'merged').length).toBeGreaterThan(0)
    await Promise.all([...some.slice(0, 4).map(id => split(first, id)), ...some.map(id => comment(id, 'later'))])
    const counts = await Promise.all(ids.map(async id => (await read(id)).occurrenceCount))
    expect(counts).toEqual([4, 1, 1, 1, 1, 4, 4, 4])
    const logs = await Promise.all([first, ...some.slice(0, 4)].map(activityOf))
    expect(logs.flat().filter(({ text }) => text === 'later')).toHaveLength(7)
  })

  it('refuses findings that are unknown, of others, the same, not merged, or too many, by field and rule', async () => {
    const [first, second] = await findings('refused', 1, 1)
    const foreign = await occur('foreign', 1, { workspaceId: 'ws_2' })
    const refusals: [string, unknown, number, string][] = [
      [`${first}/merge`, { findingIds: [foreign] }, 400, foreign],
      [`${first}/merge`, { findingIds: [idOf('nowhere')] }, 400, 'findingIds must have findings of the workspace'],
      [`${first}/merge`, { findingIds: [first] }, 400, 'findingIds must not have the finding'],
      [`${first}/merge`, { findingIds: [] }, 400, 'findingIds must have an id'],
      [`${first}/merge`, { findingIds: ['x'] }, 400, 'findingIds'],
      [`${first}/merge`, { findingIds: Array(101).fill(second) }, 400, 'findingIds must have at most 100 items'],
      [`${first}/merge`, {}, 400, 'findingIds is required'],
      [`${foreign}/merge`, { findingIds: [second] }, 404, ''],
      [`${first}/split`, { findingId: second }, 400, 'findingId must be a finding that is merged into this one'],
      [`${first}/split`, { findingId: foreign }, 400, 'findingId must be a finding that is merged into this one'],
      [`${foreign}/split`, { findingId: second }, 404, ''],
    ]
    for (const [path, body, status, text] of refusals) {
      const answer = await call(api.baseUrl, `POST /v3/findings/${path}`, { bearer, body })
      expect([status, answer.body]).toEqual([
        answer.status,
        expect.objectContaining({ message: expect.stringContaining(text) }),
      ])
    }
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme', userId: 'reader', permissions: ['org:findings:read'] })
    const reader = { bearer: await signToken({ sub: 'reader' }), body: { findingIds: [second] } }
    expect((await call(api.baseUrl, `POST /v3/findings/${first}/merge`, reader)).status).toBe(403)
    expect(await read(first)).not.toHaveProperty('mergedFindingIds')
  })

  it('may be as many as a workspace has records, and are still listed, counted and read', async () => {
    const globex = await signToken({ org: 'globex' })
    const workspaceId = 'ws_2'
    const at = new Date(NOW - DAY_MS).toISOString()
    const stays = Array.from({ length: 9 }, (_, i) => manyId(i))
    const works = Array.from({ length: FINDING_WORK_MAX }, (_, i): FindingWork => {
      const work = untouchedFinding({ workspaceId, findingId: manyId(i) }, at)
      const mergedInto = i < 9 ? undefined : stays[Math.floor((i - 9) / MERGED_MAX)]
      return mergedInto === undefined ? work : { ...work, mergedInto }
    })
    const inMerges = 9 * (1 + MERGED_MAX)
    for (let i = 0; i < works.length; i += 500) {
      const commands = works.slice(i, i + 500).flatMap(work => writeFindingWork(work))
      await commitIf(redis, { guards: [], commands })
    }
    await insertExceptions(
      client,
      works.map(({ findingId }, i) => {
        const of = i < inMerges ? { type: 'Merged', sessionId: 'many' } : { type: 'Alone' }
        return { workspaceId, findingId, traceId: newTrace(), ...of }
      }),
    )
    await insertSpans(client, [{ workspaceId, traceId: newTrace(), spanId: 'aa'.repeat(8), sessionId: 'many' }])
    const answer = await call(api.baseUrl, 'GET /v3/findings?limit=100&q=Merged&occurrences=true', { bearer: globex })
    const page = findingsPageSchema.parse(answer.body)
    expect(page.findings.map(({ id }) => id).sort()).toEqual(stays)
    expect(page.findings.map(({ occurrenceCount }) => occurrenceCount)).toEqual(Array(9).fill(1 + MERGED_MAX))
    const session = (await call(api.baseUrl, 'GET /v3/sessions/many', { bearer: globex })).body
    expect(session).toMatchObject({ session: { findingCount: 9 } })
    const one = await call(api.baseUrl, `GET /v3/findings/${manyId(20)}`, { bearer: globex })
    expect(findingAnswerSchema.parse(one.body).finding).toMatchObject({ id: manyId(0) })
    const two = await Promise.all(['a', 'b'].map(letter => occur(`one more ${letter}`, 1, { workspaceId })))
    const more = async (id: string) =>
      (await call(api.baseUrl, `POST /v3/findings/${id}/merge`, { bearer: globex, body: { findingIds: two } })).body
    const refusal = (rule: string) => expect.objectContaining({ message: expect.stringContaining(rule) })
    expect(await more(manyId(0))).toEqual(refusal(`at most ${MERGED_MAX} findings merged into it`))
    expect(await more(manyId(inMerges))).toEqual(refusal(`merges for at most ${FINDING_WORK_MAX} findings`))
  })

  const manyId = (i: number) =>
    idOf(
      `m${String(i)
        .padStart(5, '0')
        .replaceAll(/\d/g, digit => 'abcdefghij'[Number(digit)] ?? '')}`,
    )
  const early = (i: number) => ({ occurredAtUnixNano: nanos(NOW - (60 - i) * MINUTE_MS) })

  /** Stores findings with these numbers of occurrences, the first seen first, the last received last. */
  async function findings<N extends number[]>(word: string, ...counts: N): Promise<{ [K in keyof N]: string }> {
    const ids: string[] = []
    for (const [i, count] of counts.entries()) {
      const name = `${word} ${['first', 'second', 'third'][i]}`
      ids.push(await occur(name, count, { ...early(i), message: ['first', 'second', 'third'][i] ?? '' }))
    }
    return ids as { [K in keyof N]: string }
  }

  /** Stores occurrences in a trace of each, and returns the finding. */
  async function occur(word: string, count: number, occurrence: Occurrence = {}): Promise<string> {
    const of = { findingId: idOf(word), occurredAtUnixNano: nanos(NOW), receivedAt: NOW, ...occurrence }
    const occurrences = Array.from({ length: count }, () => ({ traceId: newTrace(), ...of }))
    if (count > 0) await insertExceptions(client, occurrences)
    return of.findingId
  }

  const ask = (operation: string) => call(api.baseUrl, operation, { bearer })
  const tryMerge = (id: string, findingIds: string[]) =>
    call(api.baseUrl, `POST /v3/findings/${id}/merge`, { bearer, body: { findingIds } })

  async function merge(id: string, findingIds: string[]) {
    const answer = await tryMerge(id, findingIds)
    expect(answer).toMatchObject({ status: 200 })
    return findingChangedSchema.parse(answer.body).finding
  }

  async function split(id: string, findingId: string) {
    const answer = await call(api.baseUrl, `POST /v3/findings/${id}/split`, { bearer, body: { findingId } })
    expect(answer).toMatchObject({ status: 200 })
    return findingChangedSchema.parse(answer.body).finding
  }

  async function change(id: string, body: unknown) {
    const answer = await call(api.baseUrl, `PATCH /v3/findings/${id}`, { bearer, body })
    expect(answer).toMatchObject({ status: 200 })
    return findingChangedSchema.parse(answer.body).finding
  }

  async function comment(id: string, text: string) {
    const answer = await call(api.baseUrl, `POST /v3/findings/${id}/comments`, { bearer, body: { text } })
    expect(answer).toMatchObject({ status: 201 })
  }

  async function read(id: string) {
    const answer = await ask(`GET /v3/findings/${id}`)
    expect(answer).toMatchObject({ status: 200 })
    return findingAnswerSchema.parse(answer.body).finding
  }

  async function activityOf(id: string) {
    return findingActivityPageSchema.parse((await ask(`GET /v3/findings/${id}/activity?limit=100`)).body).activity
  }

  async function list(query: string) {
    const answer = await ask(`GET /v3/findings?${query}`)
    expect(answer).toMatchObject({ status: 200 })
    return findingsPageSchema.parse(answer.body)
  }
})
