import { afterAll, beforeAll, expect, it } from 'vitest'
import { suggestionsSchema } from '../../../schemas/http/traces/suggestions.ts'
import { MINUTE_MS } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { CLIENT, SERVER, type StagedSpan, storeSpans } from '../../support/staged-calls.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/11`
const database = await createTestDatabase(services.clickhouseUrl, `suggestions_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const minuteMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 10 * MINUTE_MS

let api: TestApi
let token: string

beforeAll(async () => {
  await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
  api = await startApi({ redisUrl, clickhouseUrl: services.clickhouseUrl }, database.name)
  token = await signToken({ org: 'acme' })
  const routes = ['/cart', '/cart/items', '/Checkout', 'a\u0000b']
  const spans = routes.map((route, i): StagedSpan => {
    const attributes = { 'http.route': route, [`key.${i}`]: 'x' }
    return { trace: i + 1, id: 1, service: 'cart', kind: SERVER, name: `GET ${i}`, attributes }
  })
  const others: StagedSpan[] = [
    { trace: 9, id: 1, service: 'web', kind: CLIENT, name: 'GET', attributes: { 'http.route': '/w' } },
  ]
  await storeSpans(clickhouse, { workspaceId: 'ws_1', minuteMs }, [...spans, ...others])
  const theirs: StagedSpan[] = [
    { trace: 9, id: 1, service: 'theirs', kind: CLIENT, attributes: { 'http.route': '/theirs' } },
  ]
  await storeSpans(clickhouse, { workspaceId: newId('ws'), minuteMs }, theirs)
})
afterAll(async () => {
  await api?.stop()
  await clickhouse.close()
  await database.drop()
})

const suggest = async (query: string) => {
  const { status, body } = await call(api.baseUrl, `GET /v3/suggestions?${query}`, { bearer: token })
  expect(status, JSON.stringify(body)).toBe(200)
  return suggestionsSchema.parse(body).suggestions
}

it.each([
  ['of=service', ['cart', 'web']],
  ['of=service&contains=AR', ['cart']],
  ['of=name', ['GET', 'GET 0', 'GET 1', 'GET 2', 'GET 3']],
  ['of=name&service=cart&limit=2', ['GET 0', 'GET 1']],
  ['of=key&service=web', ['http.route']],
  ['of=key&contains=KEY.', ['key.0', 'key.1', 'key.2', 'key.3']],
  ['of=value&key=http.route', ['/Checkout', '/cart', '/cart/items', '/w', 'a\u0000b']],
  ['of=value&key=http.route&contains=ch', ['/Checkout']],
  ['of=value&key=absent', []],
  ['of=service&to=2026-01-01T00:00:00Z', []],
])('%s suggests what is stored of the workspace', async (query, expected) => {
  expect(await suggest(query)).toEqual(expected)
})

it('names what is wrong with a request', async () => {
  const { status, body } = await call(api.baseUrl, 'GET /v3/suggestions?of=value', { bearer: token })
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain('key')
})
