import { afterAll, beforeAll, expect, it } from 'vitest'
import { versionsSchema } from '../../../schemas/http/releases/health.ts'
import { MINUTE_MS } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { call, insertExceptions, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { CLIENT, SERVER, type StagedSpan, storeSpans } from '../../support/staged-calls.ts'
import { insertRows } from '../../support/workspaces/session-rows.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/11`
const database = await createTestDatabase(services.clickhouseUrl, `versions_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const minuteMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 10 * MINUTE_MS
const findingOf = (letter: string) => `fnd_${letter.repeat(26)}`

let api: TestApi
let token: string

const page = (trace: number, session: string, version: string): StagedSpan => ({
  ...{ trace, id: 1, service: 'web', kind: CLIENT, version, environment: 'production' },
  attributes: { 'session.id': session },
})
const SPANS: readonly StagedSpan[] = [
  ...[page(1, 's1', '1.0'), page(2, 's2', '1.0'), page(3, 's3', '1.0'), page(4, 's3', '1.1'), page(5, 's4', '1.1')],
  page(6, 's4', '1.1'),
  { trace: 1, id: 2, parent: 1, service: 'cart', kind: SERVER, version: 'a', failed: true, environment: 'staging' },
]

/** An exception of the page at this many minutes before the end of the minute. */
const exception = (finding: string, sessionId: string, serviceVersion: string, minutes: number) => {
  const receivedAt = minuteMs + MINUTE_MS - 1 - minutes * MINUTE_MS
  return {
    ...{ findingId: findingOf(finding), traceId: '0'.repeat(31) + finding.charCodeAt(0).toString(16).slice(-1) },
    ...{
      serviceName: 'web',
      serviceVersion,
      sessionId,
      receivedAt,
      occurredAtUnixNano: BigInt(receivedAt) * 1_000_000n,
    },
  }
}

beforeAll(async () => {
  await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
  api = await startApi({ redisUrl, clickhouseUrl: services.clickhouseUrl }, database.name)
  token = await signToken({ org: 'acme' })
  await storeSpans(clickhouse, { workspaceId: 'ws_1', minuteMs }, SPANS)
  await storeSpans(clickhouse, { workspaceId: newId('ws'), minuteMs }, SPANS)
  await insertExceptions(clickhouse, [
    // Two of the same finding; one that is older; one without a session.
    ...[exception('a', 's1', '1.0', 0.5), exception('a', 's4', '1.1', 0), exception('b', '', '0.9', 120)],
    ...[exception('b', 's2', '1.0', 0), exception('c', '', '1.1', 0)],
  ])
  await clickhouse.command({
    query: "ALTER TABLE exceptions UPDATE escaped = true WHERE session_id = 's1' SETTINGS mutations_sync = 2",
  })
  const identity = { workspace_id: 'ws_1', surface_id: 'srf_1', received_at: minuteMs, source_type: 'user' }
  await insertRows(clickhouse, 'session_identities', [
    { ...identity, session_id: 's1', identifier: 'anna' },
    { ...identity, session_id: 's2', identifier: 'anna' },
    { ...identity, session_id: 's4', identifier: 'ben' },
    { ...identity, workspace_id: 'ws_other', session_id: 's3', identifier: 'carla' },
  ])
})
afterAll(async () => {
  await api?.stop()
  await clickhouse.close()
  await database.drop()
})

const range = `from=${new Date(minuteMs).toISOString()}&to=${new Date(minuteMs + MINUTE_MS).toISOString()}`
async function read(query = '') {
  const { status, body } = await call(api.baseUrl, `GET /v3/versions?${range}${query}`, { bearer: token })
  expect(status, JSON.stringify(body)).toBe(200)
  return versionsSchema.parse(body)
}

it('have sessions and people without crashes, and new findings', async () => {
  const { versions, isCut } = await read()
  expect(isCut).toBe(false)
  const at = new Date(minuteMs).toISOString()
  const none = { total: 0, errored: 0, crashed: 0 }
  expect(versions).toEqual([
    {
      ...{ service: 'cart', version: 'a', firstAt: at, lastAt: at, spans: 1, errors: 1 },
      ...{ sessions: none, people: none, findings: { new: 0, regressed: 0 } },
    },
    {
      ...{ service: 'web', version: '1.0', firstAt: at, lastAt: at, spans: 3, errors: 0 },
      sessions: { total: 3, errored: 2, crashed: 1 },
      people: { total: 1, errored: 1, crashed: 1 },
      findings: { new: 1, regressed: 0 },
    },
    {
      ...{ service: 'web', version: '1.1', firstAt: at, lastAt: at, spans: 3, errors: 0 },
      sessions: { total: 2, errored: 1, crashed: 0 },
      people: { total: 1, errored: 1, crashed: 0 },
      findings: { new: 1, regressed: 0 },
    },
  ])
})

it('can be those of one service or environment', async () => {
  expect((await read('&service=cart')).versions.map(({ version }) => version)).toEqual(['a'])
  expect((await read('&environment=staging')).versions.map(({ version }) => version)).toContain('a')
})

it('name the version in which a resolved finding occurred again', async () => {
  const resolve = await call(api.baseUrl, `PATCH /v3/findings/${findingOf('b')}`, {
    bearer: token,
    body: { status: 'resolved' },
  })
  expect(resolve.status, JSON.stringify(resolve.body)).toBe(200)
  await insertExceptions(clickhouse, [
    { ...exception('b', 's2', '2.0', 0), receivedAt: Date.now() + 1_000, traceId: '9'.repeat(32) },
  ])
  const { versions } = await read('&service=web')
  const regressed = versions.filter(({ findings }) => findings.regressed > 0)
  expect(regressed.map(({ version, findings }) => [version, findings.regressed])).toEqual([['2.0', 1]])
})
