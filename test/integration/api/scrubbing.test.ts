import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { usagePageSchema } from '../../../schemas/http/usage.ts'
import { TABLE_CONTENTS } from '../../../schemas/records/erased-places.ts'
import { DEFAULT_SCRUBBING } from '../../../schemas/records/scrubbing.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { MASK } from '../../../shared/scrubbing/scrubber.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/5`
const workspaceId = newId('ws')
const slug = `scrubbed-${workspaceId.slice(-8)}`
const QUEUES = ['traces', 'logs', 'metrics', 'sessions', 'exceptions'] as const

describe('scrubbing', () => {
  let redis: Redis
  let database: TestDatabase
  let edge: TestEdge
  let api: TestApi
  let pools: TestPools
  let publicKey: string
  const objectStore = s3Settings(services.s3)

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    await putWorkspace(redisUrl, { id: workspaceId, slug })
    database = await createTestDatabase(services.clickhouseUrl, `scrubbing_${process.pid}`)
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

  const ask = async (operation: string, body?: unknown, sub?: string) =>
    call(api.baseUrl, operation, { bearer: await signToken({ org: slug, ...(sub && { sub }) }), body })

  /** Sends `secret` as the value of a key in every place of every format that has keys. */
  async function send(key: string, secret: string, credential = publicKey): Promise<void> {
    const value = { stringValue: secret }
    const pair = { key, value }
    const nested = {
      key: 'nested',
      value: {
        kvlistValue: {
          values: [pair, { key: 'in', value: { arrayValue: { values: [{ kvlistValue: { values: [pair] } }] } } }],
        },
      },
    }
    const attributes = [pair, nested]
    const nano = `${Date.now()}000000`
    const ids = { traceId: 'b2'.repeat(16), spanId: 'b2'.repeat(8) }
    const resource = { attributes }
    const scope = { name: 's', attributes }
    const thrown = [...attributes, { key: 'exception.type', value: { stringValue: 'E' } }]
    const event = { name: 'exception', timeUnixNano: nano, attributes: thrown }
    const span = {
      ...ids,
      name: 'x',
      startTimeUnixNano: nano,
      endTimeUnixNano: nano,
      attributes,
      events: [event],
      links: [{ ...ids, attributes }],
    }
    const log = { timeUnixNano: nano, body: { kvlistValue: { values: attributes } }, attributes: thrown }
    const exemplar = { timeUnixNano: nano, asInt: '1', filteredAttributes: attributes }
    const point = { timeUnixNano: nano, asInt: '1', attributes, exemplars: [exemplar] }
    const metric = { name: 'm', metadata: attributes, gauge: { dataPoints: [point] } }
    const identity = {
      sessionId: 's',
      identifier: 'i',
      source: { type: 'custom', name: 'n' },
      traits: { [key]: secret, deep: [{ [key]: secret }] },
    }
    const bodies = {
      '/drain/v1/traces': { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: [span] }] }] },
      '/drain/v1/logs': { resourceLogs: [{ resource, scopeLogs: [{ scope, logRecords: [log] }] }] },
      '/drain/v1/metrics': { resourceMetrics: [{ resource, scopeMetrics: [{ scope, metrics: [metric] }] }] },
      '/v3/session/identify': identity,
    }
    for (const [path, body] of Object.entries(bodies)) {
      const headers = { 'x-service-public-key': credential }
      expect((await call(edge.baseUrl, `POST ${path}`, { body, headers })).status).toBe(200)
    }
    await until('the requests are stored', async () => {
      const open = await Promise.all(QUEUES.map(queue => redis.zcard(`penstock:{${queue}.0}:pending`)))
      return open.every(count => count === 0)
    })
  }

  /** Returns the tables that have a text anywhere. */
  async function tablesWith(text: string): Promise<string[]> {
    const found: string[] = []
    for (const table of Object.keys(TABLE_CONTENTS)) {
      const [row] = await database.rows<{ n: number }>(
        `SELECT toUInt32(count()) AS n FROM ${table} WHERE position(toString(tuple(*)), '${text}') > 0`,
      )
      if (Number(row?.n) > 0) found.push(table)
    }
    return found
  }

  async function keysWith(text: string): Promise<string[]> {
    const found: string[] = []
    for (const key of await redis.keys('*')) {
      if ((await redis.type(key)) === 'string' && ((await redis.get(key)) ?? '').includes(text)) found.push(key)
    }
    return found
  }

  it('leaves no secret by its key in any table, whichever format and place it came in', async () => {
    await send('customer.reference', 'seen-everywhere')
    expect(await tablesWith('seen-everywhere')).toEqual(['spans', 'logs', 'metric_points', 'session_identities'])
    for (const [i, key] of ['db.password', 'http.request.header.authorization', 'apiKey'].entries()) {
      await send(key, `default-secret-${i}`)
    }
    expect(await tablesWith('default-secret')).toEqual([])
    expect(await keysWith('default-secret')).toEqual([])
    const shown = await ask('POST /v3/logs', {})
    expect(JSON.stringify((await ask('GET /v3/logs')).body ?? shown)).toContain(MASK)
  })

  it('is counted in the usage, each value once, also where it is read again for an exception', async () => {
    const surfaceId = newId('srf')
    const credential = await issueKey(createDirectory(redis), { workspaceId, surfaceId })
    for (let i = 0; i < 3; i++) await send('http.request.header.authorization', 'counted-secret', credential)
    await send('http.request.header.accept', 'counted-text', credential)
    const usage = await until('the usage has all requests', async () => {
      const all = usagePageSchema.parse((await ask('GET /v3/usage')).body).usage
      const own = all.filter(row => row.surfaceId === surfaceId)
      const requests = own.reduce((sum, row) => sum + row.requests, 0)
      return requests === 4 * 4 ? own : undefined
    })
    // A list of attributes has three, a span five lists with those of resource and scope, a log record four.
    expect(Object.fromEntries(usage.map(({ kind, scrubbed }) => [kind, scrubbed]))).toEqual({
      traces: [{ rule: 'credentials', values: 3 * 3 * 5 }],
      logs: [{ rule: 'credentials', values: 3 * 3 * 4 }],
      metrics: [{ rule: 'credentials', values: 3 * 3 * 5 }],
      sessions: [{ rule: 'credentials', values: 3 * 2 }],
    })
  })

  it('follows the rules of the workspace within seconds, and counts their revision', async () => {
    expect((await ask('GET /v3/scrubbing')).body).toEqual({ revision: 0, rules: DEFAULT_SCRUBBING })
    const rules = [
      { name: 'kept', keys: ['csrf token'], action: 'keep' },
      { name: 'people', keys: ['customer reference'], action: 'hash' },
      { name: 'tokens', keys: ['token'], action: 'remove' },
    ]
    const replaced = await ask('PUT /v3/scrubbing', { revision: 0, rules })
    expect(replaced).toMatchObject({ status: 200, body: { rules } })
    expect((await ask('PUT /v3/scrubbing', { revision: 0, rules: [] })).status).toBe(409)
    await until(
      'the workers know the rules',
      async () => {
        await send('customer.reference', `now-hashed-${Date.now()}`)
        const [row] = await database.rows<{ n: number }>(
          "SELECT toUInt32(count()) AS n FROM spans WHERE position(attribute_values, 'hash:') > 0",
        )
        return Number(row?.n) > 0
      },
      { deadlineMs: 30_000 },
    )
    await send('x.csrf_token', 'kept-text')
    await send('x.other_token', 'removed-text')
    await send('customer.reference', 'hashed-text')
    expect(await tablesWith('kept-text')).toEqual(['spans', 'logs', 'metric_points', 'session_identities'])
    expect([await tablesWith('removed-text'), await tablesWith('hashed-text')]).toEqual([[], []])
    const { attributes } = (
      await ask('POST /v3/scrubbing/try', {
        attributes: { 'customer.reference': 'hashed-text', x_token: 't', 'csrf.token': 'k' },
      })
    ).body as { attributes: Record<string, string> }
    expect(attributes).toMatchObject({ x_token: null, 'csrf.token': 'k' })
    // What is tried has the hash that is stored, so that it can be searched.
    expect(await tablesWith(attributes['customer.reference'] ?? '')).toEqual([
      'spans',
      'logs',
      'metric_points',
      'session_identities',
    ])
  })

  it('is tried without being kept, and refuses rules that could not match', async () => {
    const rules = [{ name: 'all', keys: ['reference'], action: 'mask' }]
    expect(await ask('POST /v3/scrubbing/try', { rules, attributes: { a: { reference: 1 }, b: [1] } })).toMatchObject({
      status: 200,
      body: { attributes: { a: { reference: MASK }, b: [1] }, rules: [{ name: 'all', values: 1 }] },
    })
    const pattern = [{ name: 'orders', keys: ['note'], fields: ['body'], pattern: 'N-(\\d+)', action: 'mask' }]
    const values = [{ name: 'people', values: ['email'], action: 'remove' }]
    expect(
      await ask('POST /v3/scrubbing/try', {
        rules: [...pattern, ...values],
        attributes: { 'a.note': 'N-12 and N-3 of a@b.co', other: ['N-4', 'a@b.co'] },
      }),
    ).toMatchObject({
      body: {
        attributes: { 'a.note': `${MASK} and ${MASK} of `, other: ['N-4', ''] },
        rules: [
          { name: 'orders', values: 2 },
          { name: 'people', values: 2 },
        ],
      },
    })
    for (const [message, rule] of [
      ['rules.0.values must be alone', { values: ['email'], keys: ['ab'] }],
      ['rules.0.values must have a kind', { values: [] }],
      ['rules.0.keys is required', {}],
      ['rules.0.fields is required with pattern', { pattern: 'x' }],
      ['rules.0.pattern is required with fields', { keys: ['ab'], fields: ['body'] }],
      ['rules.0.action must not be keep', { values: ['jwt'], action: 'keep' }],
      ['rules.0.pattern must be an expression of RE2: missing closing )', { keys: ['ab'], pattern: '(' }],
      ['rules.0.pattern is too large', { keys: ['ab'], pattern: '(?:[a-z]+[0-9]+){1,300}' }],
      ['rules.0.pattern must not match an empty text', { keys: ['ab'], pattern: 'a*' }],
    ] as const) {
      const refused = await ask('PUT /v3/scrubbing', { revision: 0, rules: [{ name: 'r', action: 'mask', ...rule }] })
      expect({ rule, ...refused }).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining(message) },
      })
    }
    for (const keys of [[], ['a'], ['--'], ['x'.repeat(101)]]) {
      const refused = await ask('PUT /v3/scrubbing', { revision: 0, rules: [{ name: 'r', keys, action: 'mask' }] })
      expect({ keys, ...refused }).toMatchObject({ status: 400, body: { message: expect.stringContaining('keys') } })
    }
  })
})
