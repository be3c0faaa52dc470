import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, expect } from 'vitest'
import { type Receipt, receiptAnswerSchema } from '../../../../schemas/http/receipts.ts'
import { QUEUES } from '../../../../schemas/queues/names.ts'
import { createDirectory, newId } from '../../../../shared/directory/directory.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import { connectConsumer } from '../../../../shared/queue/redis.ts'
import { encodeReplayMetadata } from '../../../support/clients/encode-replay-metadata.ts'
import { namedReceipts, receiptName } from '../../../support/clients/named-receipts.ts'
import { connectDatabase } from '../../../support/cluster/connect.ts'
import { call, putWorkspace, signToken, startApi } from '../../../support/services/api.ts'
import { issueKey, startEdge } from '../../../support/services/edge.ts'
import { startPools, type TestPools } from '../../../support/services/pools.ts'
import { s3Settings } from '../../../support/services/services.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase } from '../../../support/services/test-database.ts'
import { until } from '../../../support/until.ts'

export const services = sharedServices()
export const redisUrl = `${services.redisUrl}/4`
export const workspaceId = newId('ws')
export const surfaceId = newId('srf')
export const slug = `acme-${randomBytes(4).toString('hex')}`
const { s3 } = services
export const objectStore = s3Settings(s3)

export const redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
await redis.flushdb()
export const database = await createTestDatabase(services.clickhouseUrl, `receipts_${process.pid}`)
export const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
// ClickHouse refuses a row named "poison" for its content, in a table that other tables come before.
const constraint = "ALTER TABLE spans ADD CONSTRAINT no_poison CHECK name != 'poison'"
await clickhouse.command({ query: constraint })
export const objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
const edge = await startEdge(redisUrl, objectStore)
export const api = await startApi({ ...services, redisUrl }, database.name, objectStore)
await putWorkspace(redisUrl, { id: workspaceId, slug })
const directory = createDirectory(redis)
export const publicKey = await issueKey(directory, { workspaceId, surfaceId })
export const secretKey = await issueKey(directory, {
  kind: 'secret',
  scopes: ['release:write'],
  workspaceId,
  surfaceId,
})
export const token = await signToken({ org: slug })
const registered = await build('POST /v3/releases', '{"version":"1"}')
export const release = (registered.body as { releaseSlug: string }).releaseSlug
let pools: TestPools | undefined

afterAll(async () => {
  await stopWorkers()
  await api.stop()
  await edge.stop()
  objects.close()
  await clickhouse.close()
  await database.drop()
  redis.disconnect()
})

/** Starts the workers unless they run already. */
export function startWorkers(settings: Record<string, string> = {}): void {
  pools ??= startPools(QUEUES, { ...services, redisUrl }, database.name, settings)
}

export async function stopWorkers(): Promise<void> {
  await pools?.stop()
  pools = undefined
}

/** Creates another surface of the workspace. */
export async function otherSurface() {
  const surface = { workspaceId, surfaceId: newId('srf') }
  const key = await issueKey(directory, surface)
  return { ...surface, publicKey: key, credential: { headers: { 'x-service-public-key': key } } }
}

export interface Sent {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  readonly receiptId: string | null
}

async function send(operation: string, body: Uint8Array | string, headers: Record<string, string>): Promise<Sent> {
  const [method = '', path = ''] = operation.split(' ')
  const init = { method, headers, body: typeof body === 'string' ? body : new Uint8Array(body) }
  const response = await fetch(edge.baseUrl + path, init)
  const text = await response.text()
  const answer = response.headers.get('content-type') === 'application/json' ? JSON.parse(text) : text
  const receiptId = response.headers.get('x-receipt-id')
  return { status: response.status, headers: response.headers, body: answer, receiptId }
}

/** Sends a request as a browser does, with the public key. */
export function browse(operation: string, body: Uint8Array | string, headers: Record<string, string> = {}) {
  return send(operation, body, { 'x-service-public-key': publicKey, 'content-type': 'application/json', ...headers })
}

/** Sends a request as a build tool does, with the secret key. */
export function build(operation: string, body: Uint8Array | string, type = 'application/json') {
  return send(operation, body, { authorization: `Bearer ${secretKey}`, 'content-type': type })
}

export function span(name: string): string {
  const ids = { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') }
  return JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [{ ...ids, name }] }] }] })
}

export const LINE = '{"type":2,"timestamp":1700000000000}\n'
export function uploadChunk(segmentId: number, body = LINE, key = publicKey) {
  const metadata = encodeReplayMetadata({ windowId: 'w', segmentId, firstTs: 1, lastTs: 2 })
  const headers = {
    'content-type': 'application/octet-stream',
    'x-replay-metadata': metadata,
    'x-service-public-key': key,
  }
  return browse('POST /v3/replay/upload/session-1', body, headers)
}

export type Credential = { bearer: string } | { headers: Record<string, string> }
export const ask = (id: string | null, credential: Credential = { headers: { 'x-service-public-key': publicKey } }) =>
  call(api.baseUrl, `GET /v3/receipts/${id}`, credential)

export async function receiptOf({ status, receiptId }: Sent, credential?: Credential): Promise<Receipt> {
  expect({ status, receiptId }).toEqual({ status: 200, receiptId: expect.stringMatching(/^rct_/) })
  const answer = await ask(receiptId, credential)
  expect(answer).toMatchObject({ status: 200 })
  const { receipt } = receiptAnswerSchema.parse(answer.body)
  expect(receipt).toMatchObject({ id: receiptId, surfaceId })
  return receipt
}

/** Waits until the request has left the queue and returns its receipt. */
export async function settled({ receiptId }: Pick<Sent, 'receiptId'>, credential?: Credential): Promise<Receipt> {
  startWorkers()
  return until(`${receiptId} is settled`, async () => {
    const { receipt } = receiptAnswerSchema.parse((await ask(receiptId, credential)).body)
    return receipt.status === 'queued' ? undefined : receipt
  })
}

/** Expects one row of the log for each of these receipts and for every earlier one. */
export async function expectOneRowEach(sent: readonly Sent[]): Promise<void> {
  const named = await namedReceipts(database.rows)
  expect(sent.filter(({ receiptId }) => !named.has(receiptName(receiptId ?? '')))).toEqual([])
  expect([...named].filter(([, count]) => count !== 1)).toEqual([])
}
