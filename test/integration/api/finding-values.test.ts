import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { describeFinding } from '../../../findings/describe-finding.ts'
import {
  type FindingValues,
  findingValuesSchema,
  type ListedOccurrence,
  occurrencesPageSchema,
} from '../../../schemas/http/findings/occurrences.ts'
import { findingAnswerSchema } from '../../../schemas/http/findings/schemas.ts'
import { DAY_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { createDatabase, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `finding_values_${process.pid}`
const NOW = Date.now() - MINUTE_MS
const idOf = (letter: string) => `fnd_${letter.repeat(26)}`
const variantOf = (number: number) => number.toString(16).padStart(32, '0')

/** An occurrence of the variant of this number. */
interface Occurrence {
  readonly variant: number
  readonly receivedMs: number
  readonly occurredMs: number
  readonly trace: number
  readonly session: string
  readonly version: string
  readonly browser: string
  readonly route: string
}

let seed = 1
function random(below: number): number {
  seed = (seed * 48_271) % 2_147_483_647
  return seed % below
}
const pick = <T>(of: readonly T[]): T => of[random(of.length)] as T

/** Variants 1 and 2 are sent as A, 3 and 4 as B. Variant 2 moves to B, and 3 to A. */
const FOUND_AS = ['', 'a', 'a', 'b', 'b']
const MOVED_TO: Readonly<Record<number, string>> = { 2: 'b', 3: 'a' }
const findingOf = ({ variant }: Occurrence) => MOVED_TO[variant] ?? FOUND_AS[variant]

const OCCURRENCES: readonly Occurrence[] = Array.from({ length: 160 }, (_, i) => {
  const receivedMs = NOW - random(4) * DAY_MS - random(3) * MINUTE_MS - random(5)
  return {
    variant: 1 + random(4),
    ...{ receivedMs, occurredMs: receivedMs - random(3) * 1_000, trace: i },
    session: pick(['', 's1', 's2', 's3', 's4', 'recorded']),
    version: pick(['', '1.0', '1.1', '2.0']),
    browser: pick(['', 'Chrome 131', 'Firefox 132']),
    route: `/api/${random(14)}`,
  }
}).flatMap(occurrence => (random(10) === 0 ? [occurrence, occurrence, occurrence] : [occurrence]))

const IDENTITIES = [
  { session: 's1', identifier: 'ada', at: NOW - DAY_MS },
  { session: 's1', identifier: 'eve', at: NOW - 2 * DAY_MS },
  { session: 's2', identifier: 'ada', at: NOW },
  { session: 'recorded', identifier: 'bob', at: NOW },
]
const PERSON: Readonly<Record<string, string>> = { s1: 'ada', s2: 'ada', recorded: 'bob' }
const RECORDING = [NOW - 2 * MINUTE_MS, NOW - MINUTE_MS] as const

let client: ClickHouseClient
let api: TestApi
let token: string
let withoutSessions: string
let otherToken: string

async function insert(into: string, structure: string, rows: readonly object[]): Promise<void> {
  const { stream } = await client.exec({
    query: `INSERT INTO ${into} FROM input('${structure}') FORMAT JSONEachRow`,
    values: Readable.from([Buffer.from(rows.map(row => JSON.stringify(row)).join('\n'))], { objectMode: false }),
    clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
  })
  for await (const _ of stream);
}

async function store(workspaceId: string, occurrences: readonly Occurrence[], prefix = ''): Promise<void> {
  await insert(
    `exceptions (workspace_id, surface_id, received_at, variant_id, finding_id, trace_id, span_id, occurred_at_unix_nano,
       service_name, service_version, session_id, source, type, message, browser, route)
     SELECT '${workspaceId}', 'srf_1', fromUnixTimestamp64Milli(receivedMs), unhex(variantId), findingId,
       unhex(leftPad(lower(hex(trace)), 32, '0')), unhex('00000000000000aa'), toUInt64(occurredMs) * 1000000, 'shop', version, session, 'span_event',
       'E', concat('message of ', session), browser, route`,
    `variantId String, findingId String, receivedMs Int64, occurredMs Int64, trace UInt32, session String, version String,
     browser String, route String`,
    occurrences.map(({ variant, ...row }) => ({
      ...row,
      variantId: variantOf(variant),
      findingId: idOf(FOUND_AS[variant] ?? ''),
      browser: row.browser && prefix + row.browser,
    })),
  )
}

const identify = (workspaceId: string, rows: readonly object[]) =>
  insert(
    `session_identities (workspace_id, surface_id, session_id, received_at, identifier, source_type)
     SELECT '${workspaceId}', 'srf_1', session, fromUnixTimestamp64Milli(at), identifier, 'custom'`,
    'session String, identifier String, at Int64',
    rows,
  )

/** Moves a variant. */
const move = (variant: number, letter: string) =>
  client.command({
    query: `INSERT INTO finding_variants (workspace_id, variant_id, membership, finding_ids)
      SELECT 'ws_1', unhex('${variantOf(variant)}'), (toUInt64(7), toFixedString('${idOf(letter)}', 30)),
             [toFixedString('${idOf(letter)}', 30)]`,
    clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
  })

beforeAll(async () => {
  const services = sharedServices()
  client = await createDatabase(services.clickhouseUrl, DATABASE)
  await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
  await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
  await putWorkspace(services.redisUrl, {
    id: 'ws_1',
    slug: 'acme',
    userId: 'user_3',
    permissions: ['org:findings:read'],
  })
  api = await startApi(services, DATABASE)
  token = await signToken()
  withoutSessions = await signToken({ sub: 'user_3' })
  otherToken = await signToken({ sub: 'user_2', org: 'globex' })
  const shuffled = [...OCCURRENCES].sort(() => random(3) - 1)
  for (let at = 0; at < shuffled.length; at += 40) await store('ws_1', shuffled.slice(at, at + 40))
  await store('ws_2', OCCURRENCES.slice(0, 40), 'other ')
  await identify('ws_1', IDENTITIES)
  await identify('ws_2', [{ session: 's3', identifier: 'intruder', at: NOW }])
  await insert(
    `replay_chunks (workspace_id, surface_id, session_id, received_at, first_event_ms, last_event_ms, event_count)
     SELECT 'ws_1', 'srf_1', 'recorded', fromUnixTimestamp64Milli(at), at, until, 1`,
    'at Int64, until Int64',
    [{ at: RECORDING[0], until: RECORDING[1] }],
  )
  for (const [variant, letter] of Object.entries(MOVED_TO)) await move(Number(variant), letter)
})
afterAll(async () => {
  await api?.stop()
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

async function ask(path: string, bearer = token): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${api.baseUrl}${path}`, { headers: { authorization: `Bearer ${bearer}` } })
  return { status: response.status, body: await response.json() }
}

interface Range {
  readonly from?: number
  readonly to?: number
}

const rangeOf = ({ from, to }: Range) => {
  const query = new URLSearchParams()
  if (from !== undefined) query.set('from', new Date(from).toISOString())
  if (to !== undefined) query.set('to', new Date(to).toISOString())
  return query
}

const within =
  ({ from = 0, to = Number.POSITIVE_INFINITY }: Range) =>
  ({ receivedMs }: Occurrence) =>
    receivedMs >= from && receivedMs < to

/** Computes what the values of occurrences must be. */
function expectedValues(of: readonly Occurrence[]): FindingValues {
  const counts = (values: readonly string[]) => {
    const byValue = [
      ...Map.groupBy(
        values.filter(value => value !== ''),
        value => value,
      ),
    ]
      .map(([value, { length }]) => ({
        value,
        count: length,
        share: Math.round((length / of.length) * 10_000) / 10_000,
      }))
      .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    return {
      values: byValue.slice(0, 10),
      distinctCount: byValue.length,
      otherCount: byValue.slice(10).reduce((sum, { count }) => sum + count, 0),
      absentCount: values.filter(value => value === '').length,
    }
  }
  const sessions = [...new Set(of.map(({ session }) => session))].filter(session => session !== '')
  const people = [...new Set(sessions.flatMap(session => PERSON[session] ?? []))]
  const none = counts(of.map(() => ''))
  return {
    ...{ occurrenceCount: of.length, examinedCount: of.length },
    people: {
      identifiedCount: people.length,
      top: people
        .map(identifier => ({
          identifier,
          sessionCount: sessions.filter(session => PERSON[session] === identifier).length,
          occurrenceCount: of.filter(({ session }) => PERSON[session] === identifier).length,
        }))
        .sort((a, b) => b.occurrenceCount - a.occurrenceCount || (a.identifier < b.identifier ? -1 : 1)),
    },
    sessionCount: sessions.length,
    anonymousSessionCount: sessions.filter(session => PERSON[session] === undefined).length,
    versions: counts(of.map(({ version }) => version)),
    browsers: counts(of.map(({ browser }) => browser)),
    routes: counts(of.map(({ route }) => route)),
    ...{ systems: none, environments: none, hosts: none },
  }
}

const RANGES: readonly Range[] = [
  {},
  { from: NOW - DAY_MS },
  { from: NOW - 2 * DAY_MS - MINUTE_MS, to: NOW - 2 },
  { to: NOW - DAY_MS + 1 },
  { from: NOW + 1, to: NOW + 2 },
]

describe.each(['stored', 'merged'])('the occurrences of a finding, %s', state => {
  beforeAll(async () => {
    if (state === 'stored') return
    for (const table of ['exceptions', 'findings', 'finding_buckets']) {
      await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` })
    }
  })

  it.each(RANGES)('are counted by person and value: %o', async range => {
    for (const letter of ['a', 'b']) {
      const of = OCCURRENCES.filter(occurrence => findingOf(occurrence) === letter).filter(within(range))
      const { status, body } = await ask(`/v3/findings/${idOf(letter)}/values?${rangeOf(range)}`)
      expect(status).toBe(200)
      expect(findingValuesSchema.parse(body)).toEqual(expectedValues(of))
    }
  })

  it.each([2, 30])('are listed each once, last received first, in pages of %i', async limit => {
    for (const range of limit === 2 ? [{}] : RANGES) {
      const of = OCCURRENCES.filter(occurrence => findingOf(occurrence) === 'a').filter(within(range))
      const found = await listAll(range, limit)
      expect(found.map(textOfListed).sort()).toEqual(of.map(textOf).sort())
      const received = found.map(({ receivedAt }) => receivedAt)
      expect(received).toEqual([...received].sort().reverse())
    }
  })
})

/** Reads all pages of the occurrences of finding A. */
async function listAll(range: Range, limit: number): Promise<ListedOccurrence[]> {
  const found: ListedOccurrence[] = []
  const query = rangeOf(range)
  query.set('limit', String(limit))
  for (;;) {
    const { status, body } = await ask(`/v3/findings/${idOf('a')}/occurrences?${query}`)
    expect(status).toBe(200)
    const { occurrences, nextCursor } = occurrencesPageSchema.parse(body)
    found.push(...occurrences)
    if (nextCursor === null) return found
    expect(occurrences).toHaveLength(limit)
    query.set('cursor', nextCursor)
  }
}

const textOf = ({ receivedMs, occurredMs, trace, session, version, browser, route }: Occurrence) =>
  JSON.stringify([
    ...[new Date(receivedMs).toISOString(), `${new Date(occurredMs).toISOString().slice(0, -1)}000000Z`],
    ...[trace === 0 ? '' : trace.toString(16).padStart(32, '0'), session, version, browser, route],
    PERSON[session] ?? '',
    session === 'recorded' && occurredMs >= RECORDING[0] - 10_000 && occurredMs <= RECORDING[1] + 10_000
      ? new Date(Math.min(Math.max(occurredMs, RECORDING[0]), RECORDING[1])).toISOString()
      : '',
  ])

const textOfListed = (listed: ListedOccurrence) => {
  const { receivedAt, occurredAt, traceId = '', sessionId = '', serviceVersion = '' } = listed
  const { browser = '', route = '', person = '', recordedAt = '' } = listed
  return JSON.stringify([
    receivedAt,
    occurredAt,
    traceId,
    sessionId,
    serviceVersion,
    browser,
    route,
    person,
    recordedAt,
  ])
}

it('pages stay as they are while exceptions arrive', async () => {
  const path = `/v3/findings/${idOf('b')}/occurrences?limit=20`
  const first = occurrencesPageSchema.parse((await ask(path)).body)
  const second = await ask(`${path}&cursor=${first.nextCursor}`)
  const [example] = OCCURRENCES.filter(({ variant }) => variant === 4)
  if (example === undefined) throw new Error('no occurrence')
  await store(
    'ws_1',
    Array.from({ length: 30 }, () => ({ ...example, receivedMs: NOW + 10 })),
  )
  expect(await ask(`${path}&cursor=${first.nextCursor}`)).toEqual(second)
  expect(await ask(`/v3/findings/${idOf('a')}/occurrences?cursor=${first.nextCursor}`)).toMatchObject({ status: 400 })
})

it('people are shown only to those who may read sessions', async () => {
  const values = findingValuesSchema.parse((await ask(`/v3/findings/${idOf('a')}/values`, withoutSessions)).body)
  expect(values.people).toEqual({ identifiedCount: 2 })
  const { body } = await ask(`/v3/findings/${idOf('a')}/occurrences?limit=100`, withoutSessions)
  const { occurrences } = occurrencesPageSchema.parse(body)
  expect(occurrences.some(({ sessionId }) => sessionId === 's1')).toBe(true)
  expect(occurrences.filter(({ person }) => person !== undefined)).toEqual([])
})

it('a message about a finding counts the people and the sessions of its workspace', async () => {
  for (const [workspaceId, of] of [
    ['ws_1', OCCURRENCES],
    ['ws_2', OCCURRENCES.slice(0, 40)],
  ] as const) {
    // The variants of the other workspace were not moved.
    const own = of.filter(
      occurrence => (workspaceId === 'ws_1' ? findingOf(occurrence) : FOUND_AS[occurrence.variant]) === 'a',
    )
    const sessions = new Set(own.map(({ session }) => session).filter(session => session !== ''))
    const person = (session: string) =>
      workspaceId === 'ws_1' ? PERSON[session] : session === 's3' ? 'intruder' : undefined
    const people = new Set([...sessions].flatMap(session => person(session) ?? []))
    const asked = { workspaceId, findingId: idOf('a') }
    const described = await describeFinding(client, asked, new Map(), AbortSignal.timeout(10_000))
    expect(described).toMatchObject({ sessions: sessions.size, people: people.size })
    expect(people.size).toBeGreaterThan(0)
  }
})

it('those of another workspace are its own', async () => {
  const { body } = await ask(`/v3/findings/${idOf('a')}/values`, otherToken)
  const { browsers, people, examinedCount } = findingValuesSchema.parse(body)
  const own = OCCURRENCES.slice(0, 40).filter(({ variant }) => FOUND_AS[variant] === 'a')
  expect(examinedCount).toBe(own.length)
  expect(browsers.values.every(({ value }) => value.startsWith('other '))).toBe(true)
  expect(people.top?.map(({ identifier }) => identifier)).toEqual(
    own.some(({ session }) => session === 's3') ? ['intruder'] : [],
  )
  for (const kind of ['values', 'occurrences']) {
    expect(await ask(`/v3/findings/${idOf('c')}/${kind}`)).toMatchObject({ status: 404 })
    expect(await ask(`/v3/findings/none/${kind}`)).toMatchObject({ status: 404 })
  }
})

it('the finding states when its first and its last occurrence arrived', async () => {
  const { finding } = findingAnswerSchema.parse((await ask(`/v3/findings/${idOf('a')}`)).body)
  const received = OCCURRENCES.filter(occurrence => findingOf(occurrence) === 'a').map(({ receivedMs }) => receivedMs)
  expect(finding.firstReceivedAt).toBe(new Date(Math.min(...received)).toISOString())
  expect(finding.lastReceivedAt).toBe(new Date(Math.max(...received)).toISOString())
})

it('those that are erased are left out, and pages are as long as before', async () => {
  await client.command({
    query: "DELETE FROM exceptions WHERE workspace_id = 'ws_1' AND session_id IN ('s2', 's3', '')",
    clickhouse_settings: { lightweight_deletes_sync: '1' },
  })
  const left = OCCURRENCES.filter(
    occurrence => findingOf(occurrence) === 'a' && !['s2', 's3', ''].includes(occurrence.session),
  )
  expect((await listAll({}, 10)).map(textOfListed).sort()).toEqual(left.map(textOf).sort())
  const { body } = await ask(`/v3/findings/${idOf('a')}/values`)
  expect(findingValuesSchema.parse(body)).toEqual(expectedValues(left))
})
