import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findOccasions } from '../../../alerts/calling/find-occasions.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { versionDigest } from '../../../findings/standing.ts'
import { type Trial, trialSchema } from '../../../schemas/http/alerts/trial.ts'
import { type AlertRule, CALLED_KINDS } from '../../../schemas/records/alerts.ts'
import type { FindingEntry } from '../../../schemas/records/change.ts'
import type { FindingWork } from '../../../schemas/records/finding-work.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { createDirectory, type Directory, newId } from '../../../shared/directory/directory.ts'
import {
  call,
  createDatabase,
  insertExceptions,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `try_rule_${process.pid}`
const services = sharedServices()
const redisUrl = `${services.redisUrl}/13`

const idOf = (word: string) => `fnd_${word.padEnd(26, 'q')}`
/** Whole minutes of an hour ago, from which the times of the tests are counted. */
const NOW_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
const ago = (days: number, minutes = 0) => NOW_MS - days * DAY_MS + minutes * MINUTE_MS
const iso = (ms: number) => new Date(ms).toISOString()

describe('POST /v3/alerts/try', () => {
  let redis: Redis
  let directory: Directory
  let client: ClickHouseClient
  let api: TestApi
  let token: string
  /** Occasions that the watcher has found of each arrival, when it arrived. */
  const found: { kind: string; at: string; findingId: string }[] = []
  const ended = new Map<string, string>()

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    directory = createDirectory(redis)
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
    api = await startApi({ ...services, redisUrl }, DATABASE)
    token = await signToken()
    await stage()
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
    redis?.disconnect()
  })

  /** Ten days, in their order. */
  async function stage(): Promise<void> {
    await occur('old', ago(10), { serviceVersion: '1.0' })
    await occur('shop', ago(6), { serviceVersion: '1.1', environment: 'production' })
    await occur('cart', ago(5), { serviceName: 'cart', type: 'RangeError' })
    await occur('cart', ago(5, 1), { serviceName: 'cart', type: 'RangeError' })
    await occur('muted', ago(5, 2))
    await occur('counted', ago(5, 3))
    await change('old', 'resolved', ago(4), { knownVersions: [versionDigest('1.0')] })
    await change('muted', 'ignored', ago(4), { until: iso(ago(3)) })
    await change('counted', 'ignored', ago(4), { occurrences: 2, countedBefore: 0 })
    await comment('shop', ago(4, 1), 'looking')
    // A version that is known, and one that is not.
    await occur('old', ago(3), { serviceVersion: '1.0' })
    await occur('old', ago(3, 1), { serviceVersion: '2.0' })
    await occur('old', ago(3, 2), { serviceVersion: '2.0' })
    await occur('muted', ago(3, -5))
    await occur('muted', ago(3, 3))
    await occur('counted', ago(3, 4))
    await occur('counted', ago(3, 11))
    await occur('late', ago(2), { environment: 'production' })
    const spike = { findingId: idOf('old'), traceId: '0'.repeat(32), serviceVersion: '2.0' }
    await insertExceptions(
      client,
      Array.from({ length: 25 }, (_, i) => ({ ...spike, receivedAt: ago(1) + i * 10_000 })),
    )
    // A person is known of a session in which it occurred after it was new.
    await occur('shop', ago(5, 10), { serviceVersion: '1.1', environment: 'production', sessionId: 'one' })
    await insertIdentity('one', 'ada')
    await insertExceptions(client, [
      { findingId: idOf('foreign'), traceId: '0'.repeat(32), workspaceId: 'ws_2', receivedAt: ago(2) },
    ])
  }

  async function occur(word: string, receivedAt: number, more: object = {}): Promise<void> {
    await insertExceptions(client, [{ findingId: idOf(word), traceId: '0'.repeat(32), receivedAt, ...more }])
    const fromMs = Math.floor(receivedAt / 2_000) * 2_000
    const called = async (_: string, ids: readonly string[]) => ids.map(id => ended.get(id) ?? null)
    const looked = await findOccasions(
      { clickhouse: client, directory, called, now: () => receivedAt + 2_000 },
      { workspaceId: 'ws_1', surfaceIds: ['srf_1'], fromMs, toMs: fromMs + 2_000, ofFailures: false },
      AbortSignal.timeout(20_000),
    )
    for (const [id, status] of looked.ended) ended.set(id, status)
    found.push(...looked.occasions.map(({ kind, at, findingId }) => ({ kind, at, findingId })))
  }

  async function insertIdentity(session_id: string, identifier: string): Promise<void> {
    const row = {
      workspace_id: 'ws_1',
      surface_id: 'srf_1',
      session_id,
      identifier,
      received_at: iso(ago(5)).slice(0, -1),
    }
    await client.insert({ table: 'session_identities', values: [row], format: 'JSONEachRow' })
  }

  async function change(word: string, status: 'resolved' | 'ignored', ms: number, more: Partial<FindingWork>) {
    const entry = { id: newId('act'), createdAt: iso(ms), by: null, action: status } satisfies FindingEntry
    const finding = { workspaceId: 'ws_1', findingId: idOf(word) }
    await directory.changeFinding(finding, iso(ms), before => ({
      work: { ...before, ...more, status, statusAt: iso(ms) },
      entries: [entry],
    }))
  }

  async function comment(word: string, ms: number, text: string): Promise<void> {
    const entry = { id: newId('act'), createdAt: iso(ms), by: null, action: 'commented', text } satisfies FindingEntry
    const finding = { workspaceId: 'ws_1', findingId: idOf(word) }
    await directory.changeFinding(finding, iso(ms), before => ({ work: before, entries: [entry] }))
  }

  async function tryRule(rule: Omit<AlertRule, 'name'>, bearer = token): Promise<Trial> {
    const answer = await call(api.baseUrl, 'POST /v3/alerts/try', {
      bearer,
      body: { rule: { name: 'tried', ...rule } },
    })
    expect(answer).toMatchObject({ status: 200 })
    return trialSchema.parse(answer.body)
  }
  const calledIn = ({ calls }: Trial) => calls.map(({ kind, at, findingId }) => ({ kind, at, findingId }))

  it('finds what the watcher found when it arrived', async () => {
    const kinds = ['finding.created', 'finding.regressed', 'finding.unignored'] as const
    const trial = await tryRule({ kinds: [...kinds], resolved: false })
    expect(Date.parse(trial.to) - Date.parse(trial.from)).toBe(7 * DAY_MS)
    const expected = found.filter(({ at }) => Date.parse(at) >= Date.parse(trial.from))
    expect(expected).toHaveLength(8)
    // The five minutes are known in which a number of occurrences was reached.
    const counted = { kind: 'finding.unignored', at: iso(ago(3, 10)), findingId: idOf('counted') }
    const exact = expected.map(one =>
      one.findingId === counted.findingId && one.kind === counted.kind ? counted : one,
    )
    expect(calledIn(trial).toSorted(byTime)).toEqual(exact.toSorted(byTime))
    expect(trial).toMatchObject({ events: 8, messages: 8, unknown: [] })
    expect(trial.calls[0]).toEqual({
      ...{ at: iso(ago(2)), kind: 'finding.created', findingId: idOf('late'), resolved: false },
      title: 'New finding in shop: TypeError: x is not a function',
    })
  })

  it('closes what it opened when a member resolves the finding', async () => {
    const trial = await tryRule({ kinds: ['finding.regressed'] })
    expect(trial.calls).toMatchObject([
      { kind: 'finding.regressed', findingId: idOf('old'), resolved: false },
      { kind: 'finding.changed', findingId: idOf('old'), resolved: true, at: iso(ago(4)) },
    ])
  })

  it('counts the people whom a finding had concerned by then', async () => {
    const few = await tryRule({ kinds: ['finding.created', 'finding.commented'], minPeople: 1 })
    expect(few.calls).toMatchObject([{ kind: 'finding.commented', findingId: idOf('shop') }])
    expect(await tryRule({ kinds: ['finding.created', 'finding.commented'], minPeople: 2 })).toMatchObject({
      events: 0,
    })
  })

  it('measures seven days at each fifth minute', async () => {
    const trial = await tryRule({ kinds: ['finding.spiking'], spiking: { times: 2, atLeast: 20 } })
    expect(trial).toMatchObject({ events: 2, messages: 2, unknown: [] })
    expect(trial.calls).toMatchObject([
      { at: iso(ago(1, 10)), kind: 'finding.spiking', findingId: idOf('old'), resolved: true },
      {
        at: iso(ago(1, 5)),
        resolved: false,
        value: 25,
        unit: '',
        title: expect.stringMatching(/^Finding spikes in shop/),
      },
    ])
    const begun = { kinds: ['finding.spiking'], spiking: { times: 2, atLeast: 20 }, resolved: false } as const
    expect(await tryRule({ ...begun, kinds: ['finding.spiking'] })).toMatchObject({ events: 1 })
    expect(await tryRule({ ...begun, kinds: ['finding.spiking'], services: ['cart'] })).toMatchObject({ events: 0 })
    expect(await tryRule({ kinds: ['surface.silent'], silent: { minutes: 5 } })).toMatchObject({
      events: 0,
      unknown: [],
    })
  })

  const byTime = (a: { at: string; kind: string }, b: { at: string; kind: string }) =>
    a.at < b.at || (a.at === b.at && a.kind < b.kind) ? -1 : 1

  it.each([
    [{ services: ['cart'] }, ['cart']],
    [{ types: ['RangeError'] }, ['cart']],
    [{ environments: ['production'] }, ['late', 'shop']],
    [{ releases: ['1.1'] }, ['shop']],
    [{ surfaces: ['srf_2'] }, []],
    [{ services: ['shop'], environments: ['production'], releases: ['1.1', '3.0'] }, ['shop']],
  ] satisfies [Partial<AlertRule>, string[]][])('counts what meets the conditions %j', async (conditions, words) => {
    const trial = await tryRule({ kinds: ['finding.created'], ...conditions })
    expect(trial.calls.map(({ findingId }) => findingId)).toEqual(words.map(idOf))
    expect(trial.events).toBe(words.length)
  })

  it('has what members did, as the activity of findings keeps it', async () => {
    const trial = await tryRule({ kinds: ['finding.changed', 'finding.commented'] })
    expect(trial.calls.map(({ title }) => title).toSorted()).toEqual([
      'Comment on a finding in shop: TypeError: x is not a function',
      'Finding ignored in shop: TypeError: x is not a function',
      'Finding ignored in shop: TypeError: x is not a function',
      'Finding resolved in shop: TypeError: x is not a function',
    ])
    const commented = await tryRule({ kinds: ['finding.commented'] })
    expect(commented).toMatchObject({ events: 1, calls: [{ at: iso(ago(4, 1)), findingId: idOf('shop') }] })
  })

  it('counts messages by the times of the rule', async () => {
    const rule = { kinds: ['finding.created'], resolved: false } satisfies Omit<AlertRule, 'name'>
    expect(await tryRule(rule)).toMatchObject({ events: 5, messages: 5 })
    expect(await tryRule({ ...rule, everyMinutes: 60 })).toMatchObject({ events: 5, messages: 4 })
    const at = (ms: number) => iso(ms).slice(11, 16)
    const quietHours = { from: at(NOW_MS - MINUTE_MS), to: at(NOW_MS + HOUR_MS), zone: 'UTC' }
    expect(await tryRule({ ...rule, quietHours })).toMatchObject({ events: 5, messages: 3 })
  })

  it('shows another workspace its own findings alone', async () => {
    const other = await signToken({ org: 'globex', sub: 'user_2' })
    const trial = await tryRule({ kinds: ['finding.created', 'finding.changed', 'finding.regressed'] }, other)
    expect(trial).toMatchObject({ events: 1, calls: [{ findingId: idOf('foreign') }] })
  })

  it('tries a rule with all kinds and all that it can measure', async () => {
    const minutes = 5
    const trial = await tryRule({
      kinds: [...CALLED_KINDS],
      ...{ spiking: { times: 2, atLeast: 20 }, spreading: { people: 1, minutes }, silent: { minutes } },
      ...{ errors: { percent: 1, minutes, atLeast: 1 }, latency: { p95Ms: 1, minutes, atLeast: 1 } },
      metric: { expression: 'vector(1)', above: 0, minutes },
    })
    expect(trial.unknown).toEqual([])
    expect(trial.calls.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['finding.created', 'finding.spiking', 'finding.spreading', 'metric.threshold']),
    )
  })

  it('looks at a bounded number of new findings, and states that', async () => {
    await putWorkspace(redisUrl, { id: 'ws_3', slug: 'initech', userId: 'user_3' })
    const bearer = await signToken({ org: 'initech', sub: 'user_3' })
    const letters = (i: number) => String(i).replaceAll(/\d/g, digit => 'abcdefghij'[Number(digit)] ?? '')
    const rows = Array.from({ length: 2_100 }, (_, i) => ({
      ...{ findingId: idOf(`many${letters(i)}`), traceId: '0'.repeat(32), workspaceId: 'ws_3' },
      receivedAt: ago(2) + i * 10,
    }))
    await insertExceptions(client, rows)
    const trial = await tryRule({ kinds: ['finding.created'] }, bearer)
    // Two seconds have 200 events, in four messages.
    expect(trial).toMatchObject({ events: 2_000, messages: 40, unknown: [{ kind: 'finding.created' }] })
    expect(trial.calls).toHaveLength(50)
    expect(trial.calls[0]?.findingId).toMatch(/^fnd_manyca/)
  })

  it('refuses what cannot be stored either', async () => {
    const rule = { name: 'a', kinds: ['metric.threshold'], metric: { expression: 'sum(', above: 1, minutes: 1 } }
    const refused = async (body: object) => call(api.baseUrl, 'POST /v3/alerts/try', { bearer: token, body })
    expect(await refused({ rule })).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/^rule\.metric\.expression is invalid: .*parse error/) },
    })
    expect(await refused({ rule: { name: 'a', kinds: [] } })).toMatchObject({ status: 400 })
    const metric = { expression: 'up', minutes: 1 }
    expect(await refused({ rule: { ...rule, metric } })).toMatchObject({ status: 400 })
  })
})
