import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { create, toBinary } from '@bufbuild/protobuf'
import { pino } from 'pino'
import { afterAll, afterEach, expect } from 'vitest'
import { selectFindingsOfVariants } from '../../../../clickhouse/queries/attributes/membership.ts'
import {
  type FindingFrame,
  type FindingsPage,
  findingAnswerSchema,
  findingsPageSchema,
} from '../../../../schemas/http/findings/schemas.ts'
import { ExportTraceServiceRequestSchema } from '../../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { QueueName } from '../../../../schemas/queues/names.ts'
import type { SymbolicationRequest } from '../../../../schemas/queues/symbolication.ts'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { identify } from '../../../../shared/grouping/fingerprint.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import { encodePayload } from '../../../../shared/queue/payload-frame.ts'
import { newJobId, queueKeys } from '../../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../../shared/queue/redis.ts'
import { createJobAdder } from '../../../../workers/queue/sweep.ts'
import { buildApp, ORIGINAL_FRAMES } from '../../../support/pages/built-app.ts'
import { queueOn } from '../../../support/queue-on.ts'
import { createDatabase, putWorkspace, signToken, startApi } from '../../../support/services/api.ts'
import { startPools, type TestPools } from '../../../support/services/pools.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { until } from '../../../support/until.ts'
import type { ReleaseOwner } from '../../../support/workspaces/store-release.ts'

export const services = sharedServices()
export const redisUrl = `${services.redisUrl}/13`
export const DATABASE = `symbolication_${process.pid}`
export const OWNER: ReleaseOwner = { workspaceId: 'ws_1', surfaceId: 'srf_1' }
const logger = pino({ level: 'silent' })

export const redis = connectConsumer(redisUrl, logger)
await redis.flushdb()
export const client = await createDatabase(services.clickhouseUrl, DATABASE)
await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
await putWorkspace(redisUrl, { id: 'ws_2', slug: 'globex' })
const api = await startApi({ ...services, redisUrl }, DATABASE)
const token = await signToken()
const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
export const stores = { objects, releases: createReleaseStore(redis) }
const directory = await mkdtemp(join(tmpdir(), 'penstock-app-'))
export const app = await buildApp('esbuild', directory, '1.0.0')
export const opened: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

afterAll(async () => {
  await api.stop()
  objects.close()
  await client.command({ query: `DROP DATABASE ${DATABASE} SYNC` })
  await client.close()
  await redis.flushdb()
  redis.disconnect()
  await rm(directory, { recursive: true, force: true })
})

export function workers(
  queues: readonly QueueName[] = ['traces', 'exceptions', 'symbolication'],
  s3 = services.s3,
  lookUpMs?: number,
): TestPools {
  const pools = startPools(queues, { ...services, redisUrl, s3 }, DATABASE, {}, lookUpMs)
  opened.push(() => pools.stop())
  return pools
}

export async function enqueue(
  queue: QueueName,
  owner: ReleaseOwner,
  body: Buffer,
  receivedAtMs = Date.now(),
): Promise<string> {
  const contentType = queue === 'traces' ? ('application/x-protobuf' as const) : ('application/json' as const)
  const frame = { ...owner, receivedAtMs, contentType, contentEncoding: 'identity' as const }
  const payload = encodePayload([{ ...frame, attributes: '', body }])
  const jobId = newJobId()
  await redis.set(queueKeys(queue).payload(jobId), payload)
  const jobs = createJobAdder(queueOn(redis))
  await jobs.add(queue, [{ jobId, payload, frames: 1 }])
  await jobs.close()
  return jobId
}

/** Returns the stack of the failure of the app, in a script with this URL. */
export async function throwIn(url: string): Promise<string> {
  const scope: { shop?: { placeOrder(sku: string): Promise<number> } } = {}
  runInNewContext(await readFile(join(app.directory, app.script), 'utf8'), scope, { filename: url })
  return scope.shop?.placeOrder('pen').then(
    () => '',
    error => String(error.stack),
  ) as Promise<string>
}

interface Thrown {
  readonly stack: string
  readonly version?: string
  readonly service: string
  readonly debugIds?: Record<string, string>
}

/** Enqueues an exception and returns its variant. Which finding it belongs to depends on its source maps. */
export async function send(thrown: Thrown, owner = OWNER): Promise<string> {
  await enqueueSpan(thrown, owner)
  const { service: serviceName, version: serviceVersion = '', stack: stacktrace } = thrown
  const exception = { ...owner, serviceName, serviceVersion, type: 'Error', message: '', stacktrace }
  return identify(exception).variantId.toString('hex')
}

const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })

export function enqueueSpan({ stack, version, service, debugIds }: Thrown, owner: ReleaseOwner): Promise<string> {
  return enqueueExceptions([{ type: 'Error', message: '', stack, debugIds }], { version, service }, owner)
}

/** An exception of a span. */
interface SpanException {
  readonly type: string
  readonly message: string
  readonly stack: string
  readonly debugIds?: Record<string, string> | undefined
}

/** Enqueues a span with these exceptions. */
export function enqueueExceptions(
  exceptions: readonly SpanException[],
  { version, service }: { readonly version?: string | undefined; readonly service: string },
  owner = OWNER,
  receivedAtMs = Date.now(),
): Promise<string> {
  const names = [text('service.name', service), ...(version === undefined ? [] : [text('service.version', version)])]
  const events = exceptions.map(({ type, message, stack, debugIds }) => {
    const values = Object.entries(debugIds ?? {}).map(([url, id]) => text(url, id))
    const ids = { key: 'exception.debug_ids', value: { value: { case: 'kvlistValue' as const, value: { values } } } }
    const texts = { type, message, stacktrace: stack }
    const attributes = Object.entries(texts).map(([name, value]) => text(`exception.${name}`, value))
    return {
      name: 'exception',
      timeUnixNano: BigInt(receivedAtMs) * 1_000_000n,
      attributes: [...attributes, ...(debugIds === undefined ? [] : [ids])],
    }
  })
  const traceId = Buffer.from(randomUUID().replaceAll('-', ''), 'hex')
  const span = { traceId, spanId: Buffer.from('00000000000000aa', 'hex'), name: 'order', events }
  const resourceSpans = [{ resource: { attributes: names }, scopeSpans: [{ spans: [span] }] }]
  const message = create(ExportTraceServiceRequestSchema, { resourceSpans })
  return enqueue('traces', owner, Buffer.from(toBinary(ExportTraceServiceRequestSchema, message)), receivedAtMs)
}

export async function mapsHaveArrived(slug: string, release: string, owner = OWNER): Promise<void> {
  const request: SymbolicationRequest = { kind: 'release', slug, release }
  await enqueue('symbolication', owner, Buffer.from(JSON.stringify(request)))
}

/** Returns the findings of a service as the list shows them. */
export async function listFindings(service: string): Promise<FindingsPage['findings']> {
  const answer = await fetch(`${api.baseUrl}/v3/findings?limit=100&service=${service}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  expect(answer.status).toBe(200)
  return findingsPageSchema.parse(await answer.json()).findings
}

/** Returns the frames of the finding that a variant belongs to, or undefined if it is not stored. */
export async function framesOf(variantId: string): Promise<FindingFrame[] | undefined> {
  const key = { workspaceId: OWNER.workspaceId, variantIds: [variantId], merges: new Map() }
  const findingId = (await selectFindingsOfVariants(client, key, AbortSignal.timeout(5_000))).get(variantId)
  if (findingId === undefined) return undefined
  const answer = await fetch(`${api.baseUrl}/v3/findings/${findingId}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  if (answer.status === 404) return undefined
  expect(answer.status).toBe(200)
  return findingAnswerSchema.parse(await answer.json()).finding.frames
}

export async function storedFrames(variantId: string): Promise<FindingFrame[]> {
  return until('frames are stored', async () => {
    const frames = await framesOf(variantId)
    return frames?.some(({ resolved, unresolvedReason }) => resolved || unresolvedReason) ? frames : undefined
  })
}

export async function resolvedFrames(variantId: string): Promise<FindingFrame[]> {
  return until('frames are resolved', async () => {
    const frames = await framesOf(variantId)
    return frames?.some(frame => frame.resolved) ? frames : undefined
  })
}

/** Returns the requests that wait for symbolication, sorted, because Redis lists keys in no stable order. */
export const requests = async () => (await redis.keys(`${queueKeys('symbolication').payloadPrefix}*`)).sort()

export const EXPECTED = ORIGINAL_FRAMES.map(frame => ({ ...frame, file: `src/${frame.file}`, resolved: true }))
export const uploaded = () => ({ path: `${app.script}.map`, map: app.map })
