import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { findingChangedSchema, findingsPageSchema } from '../../../schemas/http/findings/schemas.ts'
import { findingActivityPageSchema } from '../../../schemas/http/findings/work.ts'
import { DAY_MS, DAY_S } from '../../../schemas/units.ts'
import { createDirectory, type Directory, newId } from '../../../shared/directory/directory.ts'
import {
  ACTIVITY_BYTES_MAX,
  activityBytes,
  FINDING_ENTRIES_KEPT,
  loadActivity,
} from '../../../shared/directory/findings/activity.ts'
import { FINDING_WORK_MAX } from '../../../shared/directory/findings/finding-work-store.ts'
import { writeFindingWork } from '../../../shared/directory/findings/write-finding-work.ts'
import { directoryKeys } from '../../../shared/directory/record.ts'
import { commitIf } from '../../../shared/directory/transaction.ts'
import {
  type Answer,
  call,
  createDatabase,
  insertExceptions,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `finding_work_${process.pid}`
const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

/** A finding of each test: the word, filled up. */
const idOf = (word: string) =>
  `fnd_${word
    .replaceAll(/[^a-z]/g, '')
    .slice(0, 20)
    .padEnd(26, 'q')}`

/** Signs a token that is valid when the clock of the API is days ahead. */
const signLasting = (claims: object = {}) => signToken({ exp: Math.floor(Date.now() / 1_000) + 30 * DAY_S, ...claims })

describe('work on findings', () => {
  let redis: Redis
  let directory: Directory
  let client: ClickHouseClient
  let api: TestApi
  let token: string
  /** How far the clock of the API is ahead. */
  let aheadMs = 0
  const now = () => Date.now() + aheadMs

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    directory = createDirectory(redis)
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme', userId: 'user_2' })
    await putWorkspace(redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_1' })
    api = await startApi({ ...services, redisUrl }, DATABASE, {}, now)
    token = await signLasting()
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
    redis?.disconnect()
  })

  it('shows a finding as open before a member has worked on it', async () => {
    const id = await occur(idOf('untouched'))
    expect(await read(id)).toMatchObject({ status: 'open' })
    expect(await activityOf(id)).toEqual([])
  })

  it('calls a resolved finding regressed only when it occurs in a later version', async () => {
    const id = await occur(idOf('resolved'), { serviceVersion: '1.0.0' }, { serviceVersion: '1.1.0' })
    const resolved = await change(id, { status: 'resolved' })
    expect(resolved).toMatchObject({ status: 'resolved', statusChangedAt: expect.any(String) })
    expect(await listed('resolved')).toContain(id)
    expect(await listed('open')).not.toContain(id)
    expect(await listed('unresolved')).not.toContain(id)

    await occur(id, { serviceVersion: '1.1.0', receivedAt: now() + 1_000 }, { receivedAt: now() + 1_000 })
    expect(await read(id)).toMatchObject({ status: 'resolved' })
    await occur(id, { serviceVersion: '1.2.0', receivedAt: now() + 1_000 })
    expect(await read(id)).toMatchObject({ status: 'regressed', regressedIn: ['1.2.0'] })
    const { findings } = findingsPageSchema.parse((await ask('GET /v3/findings?limit=1')).body)
    expect(findings).toMatchObject([{ id, status: 'regressed', regressedIn: ['1.2.0'] }])
    expect(await listed('regressed')).toContain(id)
    expect(await listed('unresolved')).toContain(id)
    expect(await listed('resolved')).not.toContain(id)
    expect(await listed('open')).not.toContain(id)

    aheadMs += 60_000
    expect(await change(id, { status: 'resolved' })).toMatchObject({ status: 'resolved' })
    expect(await read(id)).not.toHaveProperty('regressedIn')
    expect(await change(id, { status: 'open' })).toMatchObject({ status: 'open' })
    expect(await listed('open')).toContain(id)
    expect((await activityOf(id)).map(({ action }) => action)).toEqual(['reopened', 'resolved', 'resolved'])
  })

  it('calls a resolved finding regressed at its next occurrence if it has no versions', async () => {
    const id = await occur(idOf('versionless'))
    await change(id, { status: 'resolved' })
    expect(await read(id)).toMatchObject({ status: 'resolved' })
    await occur(id, { receivedAt: now() + 1_000 })
    expect(await read(id)).toMatchObject({ status: 'regressed', regressedIn: [] })
    expect(await listed('regressed')).toContain(id)
  })

  it('opens an ignored finding at the time that was chosen', async () => {
    const id = await occur(idOf('ignored until'))
    const ignoreUntil = new Date(now() + DAY_MS).toISOString()
    expect(await change(id, { status: 'ignored', ignoreUntil })).toMatchObject({
      status: 'ignored',
      ignoredUntil: ignoreUntil,
    })
    expect(await listed('ignored')).toContain(id)
    expect(await listed('unresolved')).not.toContain(id)
    aheadMs += DAY_MS + 1
    expect(await read(id)).toMatchObject({ status: 'open' })
    expect(await read(id)).not.toHaveProperty('ignoredUntil')
    expect(await listed('ignored')).not.toContain(id)
    expect(await listed('open')).toContain(id)
    const past = { status: 'ignored', ignoreUntil: new Date(now() - 1).toISOString() }
    expect((await tryChange(id, past)).status).toBe(400)
  })

  it('opens an ignored finding when it has occurred again the number of times that was chosen', async () => {
    const id = await occur(idOf('ignored times'), { receivedAt: now() }, { receivedAt: now() })
    expect(await change(id, { status: 'ignored', ignoreOccurrences: 3 })).toMatchObject({ occurrencesUntilOpen: 3 })
    await occur(id, { receivedAt: now() }, { receivedAt: now() })
    expect(await read(id)).toMatchObject({ status: 'ignored', occurrencesUntilOpen: 1 })
    expect(await listed('ignored')).toContain(id)
    await occur(id, { receivedAt: now() })
    expect(await read(id)).toMatchObject({ status: 'open' })
    expect(await listed('ignored')).not.toContain(id)
    expect(await listed('open')).toContain(id)
    await change(id, { status: 'ignored' })
    await occur(id, { receivedAt: now() })
    expect(await read(id)).toMatchObject({ status: 'ignored' })
  })

  it('is assigned to members only, and shows who changed what', async () => {
    const id = await occur(idOf('assigned'))
    expect(await tryChange(id, { assignee: 'user_9' })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('assignee') },
    })
    expect(await change(id, { assignee: 'user_2' })).toMatchObject({ status: 'open', assignee: 'user_2' })
    await change(id, { assignee: 'user_2' })
    expect(await change(id, { status: 'ignored', assignee: null })).not.toHaveProperty('assignee')
    const comment = { bearer: await signLasting({ sub: 'user_2' }), body: { text: 'It is back.' } }
    expect((await call(api.baseUrl, `POST /v3/findings/${id}/comments`, comment)).status).toBe(201)
    const by = { userId: 'user_1', apiKeyId: null }
    expect((await activityOf(id)).map(({ id: _, createdAt: __, ...entry }) => entry)).toEqual(
      expect.arrayContaining([
        { by: { userId: 'user_2', apiKeyId: null }, action: 'commented', text: 'It is back.' },
        { by, action: 'ignored' },
        { by, action: 'unassigned' },
        { by, action: 'assigned', assignee: 'user_2' },
      ]),
    )
    expect(await activityOf(id)).toHaveLength(4)
  })

  it('loses no change of several members at once', async () => {
    const id = await occur(idOf('at once'))
    const changes = Array.from({ length: 8 }, (_, i) =>
      i % 2 === 0 ? { assignee: 'user_2' } : { status: i % 4 === 1 ? 'resolved' : 'ignored' },
    )
    const comments = Array.from({ length: 8 }, (_, i) =>
      call(api.baseUrl, `POST /v3/findings/${id}/comments`, { bearer: token, body: { text: `comment ${i}` } }),
    )
    const answers = await Promise.all([...changes.map(body => tryChange(id, body)), ...comments])
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(8).fill(200), ...Array(8).fill(201)])
    const entries = await activityOf(id)
    expect(entries.filter(({ action }) => action === 'commented')).toHaveLength(8)
    expect(entries.filter(({ action }) => action === 'resolved')).toHaveLength(2)
    expect(entries.filter(({ action }) => action === 'ignored')).toHaveLength(2)
    expect(entries.filter(({ action }) => action === 'assigned')).toHaveLength(1)
    const finding = await read(id)
    expect(finding.assignee).toBe('user_2')
    expect(['resolved', 'ignored']).toContain(finding.status)
    const lists = [await listed('resolved'), await listed('ignored'), await listed('open')]
    expect(lists.filter(ids => ids.includes(id))).toHaveLength(1)
    const [work] = await directory.findingWork('ws_1', [id])
    expect(work?.activityBytes).toBe(activityBytes(await loadActivity(redis, { workspaceId: 'ws_1', findingId: id })))
  })

  it('keeps the activity of a workspace within its bytes, and refuses comments alone when they are used up', async () => {
    const id = await occur(idOf('full'))
    await change(id, { status: 'resolved' })
    const key = directoryKeys.findingActivityBytes('ws_1')
    const used = Number(await redis.get(key))
    const comment = () =>
      call(api.baseUrl, `POST /v3/findings/${id}/comments`, { bearer: token, body: { text: 'one more' } })
    expect((await comment()).status).toBe(201)
    const before = await loadActivity(redis, { workspaceId: 'ws_1', findingId: id })
    expect(Number(await redis.get(key)) - used).toBe(activityBytes(before.slice(1)))
    await redis.incrby(key, ACTIVITY_BYTES_MAX)
    try {
      expect(await comment()).toMatchObject({ status: 400, body: { message: expect.stringContaining('comments') } })
      for (const status of ['open', 'ignored', 'open']) await change(id, { status })
      const kept = await loadActivity(redis, { workspaceId: 'ws_1', findingId: id })
      expect(activityBytes(kept)).toBeLessThanOrEqual(activityBytes(before))
      expect((await activityOf(id))[0]?.action).toBe('reopened')
    } finally {
      await redis.decrby(key, ACTIVITY_BYTES_MAX)
    }
  })

  it('keeps a bounded number of entries, whose pages show each once', async () => {
    const id = await occur(idOf('entries'))
    for (let i = 0; i < FINDING_ENTRIES_KEPT + 5; i++) await change(id, { status: 'open' })
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const { body } = await ask(`GET /v3/findings/${id}/activity?limit=30${cursor}`)
      const page = findingActivityPageSchema.parse(body)
      seen.push(...page.activity.map(entry => entry.id))
      if (page.nextCursor === null) break
      cursor = `&cursor=${page.nextCursor}`
    }
    expect(seen).toHaveLength(FINDING_ENTRIES_KEPT)
    expect(new Set(seen).size).toBe(FINDING_ENTRIES_KEPT)
  })

  it.each([
    [{}, 'status or assignee'],
    [{ status: 'regressed' }, 'status'],
    [{ status: 'open', ignoreOccurrences: 1 }, 'ignoreOccurrences'],
    [{ status: 'ignored', ignoreOccurrences: 0 }, 'ignoreOccurrences'],
    [{ assignee: '' }, 'assignee'],
    [{ assignee: 'x'.repeat(201) }, 'assignee'],
    [{ state: 'open' }, 'state'],
  ])('refuses the change %j', async (body, word) => {
    const id = await occur(idOf('refused'))
    const answer = await tryChange(id, body)
    expect(answer).toMatchObject({ status: 400, body: { code: 'REQUEST_INVALID', service: 'api-findings' } })
    expect((answer.body as { message: string }).message).toContain(word)
  })

  it('takes a comment once for an idempotency key', async () => {
    const id = await occur(idOf('once'))
    const send = (text: string) =>
      call(api.baseUrl, `POST /v3/findings/${id}/comments`, {
        bearer: token,
        body: { text },
        headers: { 'idempotency-key': 'once' },
      })
    const answers = await Promise.all([1, 2, 3].map(() => send('seen')))
    expect(answers).toMatchObject(Array(3).fill({ status: 201, body: answers[0]?.body }))
    expect(await send('another')).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_CONFLICT' } })
    expect(await activityOf(id)).toHaveLength(1)
  })

  it('refuses comments that are empty or too long, unknown findings, and callers without the permission', async () => {
    const id = await occur(idOf('comments'))
    const comment = (findingId: string, text: string, bearer = token) =>
      call(api.baseUrl, `POST /v3/findings/${findingId}/comments`, { bearer, body: { text } })
    expect((await comment(id, '')).status).toBe(400)
    expect((await comment(id, 'é'.repeat(2_000))).status).toBe(201)
    expect((await comment(id, 'é'.repeat(2_001))).status).toBe(400)
    expect(await comment(idOf('nowhere'), 'x')).toMatchObject({ status: 404, body: { code: 'FINDING_NOT_FOUND' } })
    expect((await tryChange('fnd_x', { status: 'open' })).status).toBe(404)
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme', userId: 'reader', permissions: ['org:findings:read'] })
    const reader = await signLasting({ sub: 'reader' })
    expect(await comment(id, 'x', reader)).toMatchObject({ status: 403, body: { code: 'PERMISSION_DENIED' } })
  })

  it('forgets findings that are not retained any more when there are too many, and lists by status with as many', async () => {
    const bearer = await signLasting({ org: 'globex' })
    const kept = await occur(idOf('kept'), { workspaceId: 'ws_2' })
    const other = await occur(idOf('other'), { workspaceId: 'ws_2' })
    const at = new Date(Date.now() - DAY_MS).toISOString()
    const ids = Array.from({ length: FINDING_WORK_MAX - 1 }, (_, i) => idOf(letters(i)))
    const works = [kept, ...ids].map(findingId => ({
      ...({ version: 1, workspaceId: 'ws_2', findingId, status: 'resolved', statusAt: at } as const),
      ...{ knownVersions: [], assignee: null, activityBytes: 0, changedAt: at },
    }))
    // One by one they take most of the test.
    for (let i = 0; i < works.length; i += 500) {
      const commands = works.slice(i, i + 500).flatMap(work => writeFindingWork(work))
      await commitIf(redis, { guards: [], commands })
    }
    const list = async (status: string) => {
      const answer = await call(api.baseUrl, `GET /v3/findings?status=${status}`, { bearer })
      return findingsPageSchema.parse(answer.body).findings.map(({ id }) => id)
    }
    expect([await list('open'), await list('regressed'), await list('resolved')]).toEqual([[other], [kept], []])
    const body = { status: 'ignored' }
    expect((await call(api.baseUrl, `PATCH /v3/findings/${other}`, { bearer, body })).status).toBe(200)
    const count = await redis.hlen('penstock:{directory}:workspace:ws_2:finding-work')
    expect(count).toBeLessThan(FINDING_WORK_MAX)
    expect([await list('open'), await list('ignored'), await list('regressed')]).toEqual([[], [other], [kept]])
  })

  /** Four letters for a number. */
  function letters(number: number): string {
    const digits = String(number).padStart(5, '0')
    return digits.replaceAll(/\d/g, digit => 'abcdefghij'[Number(digit)] ?? '')
  }

  /** Stores an occurrence, or several, and returns the finding. */
  async function occur(
    findingId: string,
    ...occurrences: { serviceVersion?: string; receivedAt?: number; workspaceId?: string }[]
  ): Promise<string> {
    const traceId = newId('srf').slice(4).padEnd(32, '0')
    const some = occurrences.length === 0 ? [{}] : occurrences
    await insertExceptions(
      client,
      some.map(occurrence => ({ findingId, traceId, receivedAt: now() - 1_000, ...occurrence })),
    )
    return findingId
  }

  function ask(operation: string): Promise<Answer> {
    return call(api.baseUrl, operation, { bearer: token })
  }

  function tryChange(findingId: string, body: unknown): Promise<Answer> {
    return call(api.baseUrl, `PATCH /v3/findings/${findingId}`, { bearer: token, body })
  }

  async function change(findingId: string, body: unknown) {
    const answer = await tryChange(findingId, body)
    expect(answer).toMatchObject({ status: 200 })
    return findingChangedSchema.parse(answer.body).finding
  }

  async function read(findingId: string) {
    const { body } = await ask(`GET /v3/findings/${findingId}`)
    return (body as { finding: { status: string; assignee?: string } }).finding
  }

  async function activityOf(findingId: string) {
    const answer = await ask(`GET /v3/findings/${findingId}/activity?limit=100`)
    return findingActivityPageSchema.parse(answer.body).activity
  }

  async function listed(status: string): Promise<string[]> {
    const answer = await ask(`GET /v3/findings?limit=100&status=${status}`)
    return findingsPageSchema.parse(answer.body).findings.map(({ id }) => id)
  }
})
