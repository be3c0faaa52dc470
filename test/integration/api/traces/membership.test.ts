import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import type { Spans } from '../../../../schemas/http/traces/schemas.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import {
  call,
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  START,
  signToken,
  startApi,
  type TestApi,
} from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const services = sharedServices()
const DATABASE = `trace_membership_${process.pid}`
const RUN = randomBytes(5).toString('hex')
const WORKSPACE = { id: `ws_${RUN}`, slug: `members-${RUN}` }
const NAMED = `fnd_${'a'.repeat(26)}`
const ALSO_NAMED = `fnd_${'b'.repeat(26)}`
const UNNAMED = `fnd_${'c'.repeat(26)}`
const UNKNOWN = `fnd_${'d'.repeat(26)}`

let clock = Date.now()
let client: ClickHouseClient
let api: TestApi
let bearer: string
let traces = 0

beforeAll(async () => {
  client = await createDatabase(services.clickhouseUrl, DATABASE)
  await putWorkspace(services.redisUrl, WORKSPACE)
  bearer = await signToken({ org: WORKSPACE.slug })
  api = await startApi(services, DATABASE, {}, () => clock)
})
afterAll(async () => {
  await api?.stop()
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

const nextTraceId = () => (0xfee_0000 + traces++).toString(16).padStart(32, '0')

async function statusOf(traceId: string, findingId: string): Promise<number> {
  const { status } = await call(api.baseUrl, `GET /v3/findings/${findingId}/traces/${traceId}`, { bearer })
  return status
}

it('is proven by an exception of the finding in the trace, and the spans name the findings of their own exceptions', async () => {
  const traceId = nextTraceId()
  const workspaceId = WORKSPACE.id
  await insertSpans(client, [
    { workspaceId, traceId, spanId: '00000000000000a1' },
    { workspaceId, traceId, spanId: '00000000000000a2' },
  ])
  const spanId = '00000000000000a2'
  const first = { workspaceId, traceId, spanId, findingId: ALSO_NAMED, occurredAtUnixNano: START }
  await insertExceptions(client, [
    { workspaceId, traceId, spanId, findingId: NAMED, occurredAtUnixNano: START + 1n },
    ...[first, { ...first, occurredAtUnixNano: START + 2n }],
    { workspaceId, traceId, spanId, findingId: UNNAMED, source: 'log_record' },
    { workspaceId: 'ws_other', traceId, spanId, findingId: UNKNOWN },
  ])
  expect(await statusOf(traceId, NAMED)).toBe(200)
  expect(await statusOf(traceId, ALSO_NAMED)).toBe(200)
  expect(await statusOf(traceId, UNNAMED)).toBe(200)
  expect(await statusOf(traceId, UNKNOWN)).toBe(404)
  const body = { spanIds: ['00000000000000a1', spanId] }
  const { status, body: read } = await call(api.baseUrl, `POST /v3/traces/${traceId}/spans`, { bearer, body })
  expect(status).toBe(200)
  expect((read as Spans).spans.map(({ findingIds }) => findingIds)).toEqual([[], [ALSO_NAMED, NAMED]])
})

it('of another workspace proves nothing', async () => {
  const traceId = nextTraceId()
  await insertSpans(client, [
    { workspaceId: 'ws_other', traceId, spanId: '00000000000000a1' },
    { workspaceId: WORKSPACE.id, traceId, spanId: '00000000000000a2' },
  ])
  await insertExceptions(client, [{ workspaceId: 'ws_other', traceId, findingId: NAMED }])
  expect(await statusOf(traceId, NAMED)).toBe(404)
})

it('ends with the retention of findings, also while the span of the exception is kept', async () => {
  const workspaceId = WORKSPACE.id
  const [old, both] = [nextTraceId(), nextTraceId()]
  const tenDaysAgo = clock - 10 * DAY_MS
  for (const traceId of [old, both]) {
    await insertSpans(client, [{ workspaceId, traceId, spanId: '00000000000000a1', receivedAt: tenDaysAgo }])
    await insertExceptions(client, [{ workspaceId, traceId, findingId: NAMED, receivedAt: tenDaysAgo }])
  }
  await insertExceptions(client, [{ workspaceId, traceId: both, findingId: NAMED, receivedAt: clock }])
  const statuses = async () => [await statusOf(old, NAMED), await statusOf(both, NAMED)]
  expect(await statuses()).toEqual([200, 200])
  const put = await call(api.baseUrl, 'PUT /v3/retention', { bearer, body: { findings: 7 } })
  expect(put.status).toBe(200)
  clock += 10_000
  expect(await statuses()).toEqual([404, 200])
  expect((await call(api.baseUrl, 'PUT /v3/retention', { bearer, body: { findings: 11 } })).status).toBe(200)
  clock += 10_000
  expect(await statuses()).toEqual([200, 200])
})
