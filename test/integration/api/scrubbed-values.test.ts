import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { TABLE_CONTENTS } from '../../../schemas/records/erased-places.ts'
import { DEFAULT_SCRUBBING, VALUE_KINDS } from '../../../schemas/records/scrubbing.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { Scrubber } from '../../../shared/scrubbing/scrubber.ts'
import { type FieldSpec, MESSAGE_SPECS } from '../../../workers/otlp/protobuf/message-specs.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/9`
const workspaceId = newId('ws')
const slug = `values-${workspaceId.slice(-8)}`
const QUEUES = ['traces', 'logs', 'metrics', 'sessions', 'exceptions', 'symbolication'] as const
const SECRETS = 2_000
const RULES = [
  ...DEFAULT_SCRUBBING,
  ...VALUE_KINDS.map(kind => ({ name: kind, values: [kind], action: kind === 'email' ? 'hash' : 'mask' })),
]

let redis: Redis
let database: TestDatabase
let edge: TestEdge
let api: TestApi
let pools: TestPools
let publicKey: string

beforeAll(async () => {
  const objectStore = s3Settings(services.s3)
  redis = new Redis(redisUrl)
  await redis.flushdb()
  await putWorkspace(redisUrl, { id: workspaceId, slug })
  database = await createTestDatabase(services.clickhouseUrl, `scrubbed_values_${process.pid}`)
  edge = await startEdge(redisUrl, objectStore)
  api = await startApi({ ...services, redisUrl }, database.name, objectStore)
  publicKey = await issueKey(createDirectory(redis), { workspaceId, surfaceId: newId('srf') })
  pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
})
afterAll(async () => {
  await pools?.stop()
  await api?.stop()
  await edge?.stop()
  await database?.drop()
  redis?.disconnect()
})

/** Secrets of every kind that differ from all others by a word and the first digits of cards. */
class Secrets {
  count = 0
  readonly #word: string
  readonly #cards: string

  constructor(word: string, cards: string) {
    this.#word = word
    this.#cards = cards
  }

  /** Texts of which one is in whatever has a secret. */
  get marks(): string[] {
    const groups = [this.#cards.slice(0, 4), this.#cards.slice(4)]
    const words = ['', ' ', '  '].map(pad => Buffer.from(`${pad}${this.#word}`).toString('base64'))
    // The first and the last characters of each depend on what is beside them. No word may have three hexadecimal digits in a row,
    // which the hash of a value in base64 may have as well.
    return [this.#word, this.#cards, groups.join(' '), ...words.map(text => text.replaceAll('=', '').slice(4, 8))]
  }

  card(): string {
    const digits = `${this.#cards}${String(this.count++).padStart(15 - this.#cards.length, '0')}`
    const scanner = new Scrubber({ revision: 1, rules: [{ name: 'c', values: ['card_number'], action: 'mask' }] })
      .scanner
    const last = Array.from({ length: 10 }, (_, digit) => digit).find(digit =>
      scanner?.ruleOfNumber(BigInt(`${digits}${digit}`)),
    )
    return `${digits}${last}`
  }

  next(): string {
    const n = this.count++
    const payload = Buffer.from(JSON.stringify({ sub: `${this.#word}${n}` })).toString('base64url')
    const card = this.card()
    const kinds = [
      `${this.#word}${n}@mail.example`,
      `eyJhbGciOiJIUzI1NiJ9.${payload}.c2lnbmF0dXJl`,
      n % 2 === 0 ? card : card.replaceAll(/(?<=^(?:.{4})+)(?=.)/g, ' '),
      `https://joe:${this.#word}-${n}@host.example/x`,
      `/callback?state=1&access_token=${this.#word}-${n}&x=1`,
    ]
    return kinds[n % kinds.length] as string
  }
}

/** Returns a message in JSON with a secret in every field that can have one. */
function fill(name: string, secrets: Secrets, depth = 0): Record<string, unknown> {
  const fields = Object.entries(MESSAGE_SPECS[name] as Readonly<Record<string, FieldSpec>>)
  if (name === 'AnyValue') return anyValue(secrets, depth)
  const filled = fields.map(([field, [, type, repeated]]) => {
    const value = type in MESSAGE_SPECS ? fill(type, secrets, depth) : simpleValue(type, secrets)
    return [field, repeated ? [value] : value] as const
  })
  return Object.fromEntries(filled)
}

function anyValue(secrets: Secrets, depth: number): Record<string, unknown> {
  const kind = secrets.count % (depth > 2 ? 4 : 6)
  if (kind === 0) return { intValue: secrets.card() }
  if (kind === 1) return { doubleValue: Number(secrets.card()) }
  if (kind === 2) return { bytesValue: Buffer.from(`from ${secrets.next()} on`).toString('base64') }
  if (kind === 4) return { arrayValue: fill('ArrayValue', secrets, depth + 1) }
  if (kind === 5) return { kvlistValue: fill('KeyValueList', secrets, depth + 1) }
  return { stringValue: `from ${secrets.next()} on` }
}

function simpleValue(type: string, secrets: Secrets): unknown {
  const nano = `${Date.now()}000000`
  const values: Readonly<Record<string, unknown>> = { time: nano, bool: true, double: 1.5, sint32: 1, uint32: 1 }
  if (type === 'string') return `from ${secrets.next()} on`
  if (type === 'id') return 'c3'.repeat(8)
  return values[type] ?? '1'
}

/** The members of a oneof exclude each other. */
function metrics(secrets: Secrets): unknown[] {
  const { gauge, sum, histogram, exponentialHistogram, summary, ...metric } = fill('Metric', secrets)
  const first = <T>(value: T, change: object) => {
    const { dataPoints, ...rest } = value as { dataPoints: [object] }
    return { ...rest, dataPoints: [{ ...dataPoints[0], ...change }] }
  }
  const isOne = {
    asDouble: undefined,
    exemplars: [{ ...fill('Exemplar', secrets), traceId: 'c3'.repeat(16), asDouble: undefined }],
  }
  return [
    { ...metric, gauge: first(gauge, isOne) },
    { ...metric, sum: first(sum, isOne) },
    { ...metric, histogram: first(histogram, { explicitBounds: [], bucketCounts: ['1'], exemplars: isOne.exemplars }) },
    { ...metric, exponentialHistogram: first(exponentialHistogram, { exemplars: isOne.exemplars }) },
    { ...metric, summary },
  ]
}

/** Sends a secret in every field of every format. */
async function send(secrets: Secrets): Promise<void> {
  const resource = fill('Resource', secrets)
  const scope = fill('InstrumentationScope', secrets)
  const text = () => `from ${secrets.next()} on`
  const string = (key: string) => ({ key, value: { stringValue: text() } })
  const stack = { key: 'exception.stacktrace', value: { stringValue: `Error: ${text()}\n    at ${text()} (a.js:1:2)` } }
  const thrown = [string('exception.type'), string('exception.message'), stack, string('code.function.name')]
  const traceId = 'c3'.repeat(16)
  const exception = { ...fill('Event', secrets), name: 'exception', attributes: thrown }
  const span = {
    ...fill('Span', secrets),
    traceId,
    events: [fill('Event', secrets), exception],
    links: [{ ...fill('Link', secrets), traceId }],
  }
  const log = { ...fill('LogRecord', secrets), traceId }
  const bodies = {
    '/drain/v1/traces': {
      resourceSpans: [{ resource, schemaUrl: text(), scopeSpans: [{ scope, schemaUrl: text(), spans: [span] }] }],
    },
    '/drain/v1/logs': {
      resourceLogs: [{ resource, scopeLogs: [{ scope, logRecords: [log, { ...log, attributes: thrown }] }] }],
    },
    '/drain/v1/metrics': { resourceMetrics: [{ resource, scopeMetrics: [{ scope, metrics: metrics(secrets) }] }] },
    '/v3/session/identify': {
      ...{ sessionId: newId('key'), identifier: text(), source: { type: 'custom', name: text() }, avatar: text() },
      ...{ email: secrets.next(), name: text(), country: 'CH', traits: { a: text(), b: [{ c: text() }], [text()]: 1 } },
    },
  }
  for (const [path, body] of Object.entries(bodies)) {
    const headers = { 'x-service-public-key': publicKey }
    const answer = await call(edge.baseUrl, `POST ${path}`, { body, headers })
    expect({ path, ...answer }).toMatchObject({ status: 200 })
    expect(answer.body).not.toHaveProperty('partialSuccess.errorMessage')
  }
}

async function settled(): Promise<void> {
  await until('the requests are stored', async () => {
    const open = await Promise.all(QUEUES.map(queue => redis.zcard(`penstock:{${queue}.0}:pending`)))
    return open.every(count => count === 0)
  })
}

/** Returns the tables and keys that have one of these texts. */
async function placesWith(marks: readonly string[]): Promise<string[]> {
  const places: string[] = []
  const condition = marks.map(mark => `position(toString(tuple(*)), '${mark}') > 0`).join(' OR ')
  for (const table of Object.keys(TABLE_CONTENTS)) {
    const [row] = await database.rows<{ n: number }>(`SELECT toUInt32(count()) AS n FROM ${table} WHERE ${condition}`)
    if (Number(row?.n) > 0) places.push(table)
  }
  for (const key of await redis.keys('*')) {
    const bytes = (await redis.dumpBuffer(key)) ?? Buffer.alloc(0)
    if (marks.some(mark => key.includes(mark) || bytes.includes(mark))) places.push(key)
  }
  return places
}

it(`leaves none of ${SECRETS} secrets in any table or key, whichever field of which format they came in`, async () => {
  const before = new Secrets('undisguised', '49990000')
  await send(before)
  await settled()
  const found = await placesWith(before.marks)
  expect(found).toEqual(
    expect.arrayContaining(['spans', 'logs', 'metric_points', 'session_identities', 'exceptions', 'findings']),
  )

  const bearer = await signToken({ org: slug })
  expect(await call(api.baseUrl, 'PUT /v3/scrubbing', { bearer, body: { revision: 0, rules: RULES } })).toMatchObject({
    status: 200,
  })
  await until(
    'the workers know the rules',
    async () => {
      await send(new Secrets('undisguised', '49990000'))
      await settled()
      const [row] = await database.rows<{ n: number }>(
        "SELECT toUInt32(count()) AS n FROM session_identities WHERE position(traits, '[scrubbed]') > 0",
      )
      return Number(row?.n) > 0
    },
    { deadlineMs: 30_000 },
  )
  const secrets = new Secrets('smuggled', '49991111')
  while (secrets.count < SECRETS) await send(secrets)
  await settled()
  expect(await placesWith(secrets.marks)).toEqual([])
  const [row] = await database.rows<{ n: number }>(
    "SELECT toUInt32(count()) AS n FROM exceptions WHERE position(message, '[scrubbed]') > 0 OR position(message, 'hash:') > 0",
  )
  expect(Number(row?.n)).toBeGreaterThan(0)
}, 180_000)
