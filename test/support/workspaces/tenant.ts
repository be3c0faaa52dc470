import { randomBytes, randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { Redis } from 'ioredis'
import { openDeliveryQueue } from '../../../alerts/calling/delivery-queue.ts'
import { letterId } from '../../../letters/letter-id.ts'
import { erasureAnswerSchema } from '../../../schemas/http/privacy/erasures.ts'
import { RECEIPT_HEADER } from '../../../schemas/http/receipts.ts'
import {
  surfaceCreatedSchema,
  surfaceKeyCreatedSchema,
  workspaceKeyCreatedSchema,
} from '../../../schemas/http/workspaces/schemas.ts'
import { PERMISSIONS } from '../../../schemas/records/directory.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { releaseSlugOf } from '../../../shared/ids/release-slug.ts'
import { exampleDelivery } from '../alerts/example-deliveries.ts'
import { encodeReplayMetadata } from '../clients/encode-replay-metadata.ts'
import { createReleaseClient, digestOf, entryOf, mapOf, type NamedMap } from '../clients/release-client.ts'
import { type Answer, call, putWorkspace, signToken } from '../services/api.ts'
import { exampleExport } from './example-export.ts'
import {
  ALERT_RULE,
  type CredentialKind,
  MAP_PATHS,
  RECEIVER,
  RELEASE_VERSION,
  type Things,
} from './isolation-matrix.ts'

/** Workspace with ids and credentials of its data. */
export interface Tenant {
  readonly workspaceId: string
  readonly things: Things
  readonly credentials: Readonly<Record<CredentialKind, string>>
}

/** Servers that a tenant is created on. */
interface TenantDeps {
  readonly redisUrl: string
  readonly apiUrl: string
  readonly edgeUrl: string
  readonly signWorkloadToken: (slug: string) => Promise<string>
}

const hex = (bytes: number) => randomBytes(bytes).toString('hex')
const newSlug = () => `ws-${hex(10)}`
const newSessionId = () => `session-${hex(10)}`
const userIdentifierOf = (workspaceId: string) => `user-of-${workspaceId}`

/** Well-formed ids of things that are nowhere. */
export function absentThings(): Things {
  return {
    slug: newSlug(),
    surfaceId: newId('srf'),
    surfaceKeyId: newId('key'),
    apiKeyId: newId('key'),
    memberId: `user_${hex(10)}`,
    sessionId: newSessionId(),
    userIdentifier: `user-${hex(10)}`,
    findingId: `fnd_${'a'.repeat(26)}`,
    traceId: hex(16),
    spanId: hex(8),
    metricName: `metric.${hex(8)}`,
    releaseSlug: releaseSlugOf({ workspaceId: newId('ws'), surfaceId: newId('srf'), name: RELEASE_VERSION }),
    mapHash: hex(32),
    receiptId: `rct_${'a'.repeat(44)}_${newId('srf')}`,
    erasureId: `ers_${hex(10)}`,
    deliveryId: `evt_${'a'.repeat(26)}_${newId('rcv')}`,
    letterId: letterId({ receivedAtMs: Date.now(), jobId: randomUUID(), index: 0 }),
  }
}

/**
 * A workspace with two of everything that lists show, made by the service's own operations. Its release has maps, and a
 * part and a single upload that are in no manifest yet.
 */
export async function makeTenant({ redisUrl, apiUrl, edgeUrl, signWorkloadToken }: TenantDeps): Promise<Tenant> {
  const workspaceId = newId('ws')
  const slug = newSlug()
  const userId = `user_${workspaceId}`
  await putWorkspace(redisUrl, { id: workspaceId, slug, userId })
  const sessionToken = await signToken({ org: slug, sub: userId })
  const make = async (path: string, body: unknown) =>
    (await expectOk(call(apiUrl, `POST ${path}`, { bearer: sessionToken, body }))).body
  const makeSurface = async () => surfaceCreatedSchema.parse(await make('/v3/surfaces', { name: slug })).surface
  const makeSurfaceKey = async (surfaceId: string, body: object) =>
    surfaceKeyCreatedSchema.parse(await make(`/v3/surfaces/${surfaceId}/keys`, body)).key
  const makeApiKey = async () => {
    const request = { idempotencyKey: randomUUID(), name: slug, scopes: PERMISSIONS, secondsUntilExpiration: null }
    return workspaceKeyCreatedSchema.parse(await make(`/v3/workspaces/${slug}/api-keys`, request)).apiKey
  }

  const memberId = `member_${hex(10)}`
  await make('/v3/members', { userId: memberId, permissions: ['org:findings:read'] })
  const surface = await makeSurface()
  const publicKey = await makeSurfaceKey(surface.id, { kind: 'public' })
  const secretKey = await makeSurfaceKey(surface.id, { kind: 'secret', scopes: ['release:write'] })
  const apiKey = await makeApiKey()
  await makeApiKey()
  const sessionId = newSessionId()
  const seen = await sendTelemetry(edgeUrl, { workspaceId, surfaceId: surface.id }, publicKey.secret, sessionId)
  const release = await sendRelease(edgeUrl, secretKey.secret, workspaceId)
  await makeAlerts(apiUrl, sessionToken)
  const second = await makeSurface()
  await make('/v3/erasures', { sessionId: newSessionId() })
  const { erasure } = erasureAnswerSchema.parse(await make('/v3/erasures', { sessionId: newSessionId() }))
  const secondKey = await makeSurfaceKey(second.id, { kind: 'public' })
  await sendTelemetry(edgeUrl, { workspaceId, surfaceId: second.id }, secondKey.secret, newSessionId())
  return {
    workspaceId,
    things: {
      slug,
      surfaceId: surface.id,
      surfaceKeyId: publicKey.id,
      apiKeyId: apiKey.id,
      memberId,
      sessionId,
      userIdentifier: userIdentifierOf(workspaceId),
      erasureId: erasure.id,
      deliveryId: await queueDelivery(redisUrl, workspaceId),
      ...seen,
      // Known once its letters are indexed.
      letterId: '',
      ...release,
    },
    credentials: {
      publicKey: publicKey.secret,
      secretKey: secretKey.secret,
      workspaceKey: apiKey.secret,
      sessionToken,
      workload: await signWorkloadToken(slug),
    },
  }
}

async function makeAlerts(apiUrl: string, bearer: string): Promise<void> {
  const receivers = [{ ...RECEIVER, to: [`${hex(10)}@shop.example`] }]
  await expectOk(call(apiUrl, 'PUT /v3/alerts', { bearer, body: { revision: 0, receivers, rules: [ALERT_RULE] } }))
}

/** Queues a delivery that no pool sends. */
async function queueDelivery(redisUrl: string, workspaceId: string): Promise<string> {
  const redis = new Redis(redisUrl)
  const queue = openDeliveryQueue(redis)
  const delivery = exampleDelivery({ workspaceId, receiverId: newId('rcv') })
  await queue.add([delivery])
  await queue.close()
  redis.disconnect()
  return delivery.id
}

/** The maps of a tenant's release, by their paths. */
export function mapsOf(workspaceId: string): NamedMap[] {
  return Object.values(MAP_PATHS).map(path => ({ path, bytes: mapOf(`${workspaceId} ${path}`) }))
}

async function sendRelease(
  edgeUrl: string,
  secretKey: string,
  workspaceId: string,
): Promise<Pick<Things, 'releaseSlug' | 'mapHash'>> {
  const client = createReleaseClient(edgeUrl, secretKey)
  await client.register('0.9.0')
  const releaseSlug = await client.register(RELEASE_VERSION)
  const maps = new Map(mapsOf(workspaceId).map(map => [map.path, map.bytes]))
  const held = { path: MAP_PATHS.held, bytes: maps.get(MAP_PATHS.held) as Buffer }
  const second = { path: `second-${held.path}`, bytes: held.bytes }
  await client.upload(releaseSlug, [held, second])
  await expectOk(client.complete(releaseSlug, [entryOf(held), entryOf(second)]))
  await expectOk(client.putPart(releaseSlug, MAP_PATHS.part, 0, maps.get(MAP_PATHS.part) as Buffer))
  await expectOk(client.putSingle(releaseSlug, MAP_PATHS.single, maps.get(MAP_PATHS.single) as Buffer))
  const report = { bearer: secretKey, body: { result: 'ok' } }
  await expectOk(call(edgeUrl, `POST /v3/releases/${releaseSlug}/telemetry`, report))
  return { releaseSlug, mapHash: digestOf(held.bytes) }
}

/** A session with an identity and a replay, a finding with two traces, and a metric. */
async function sendTelemetry(
  edgeUrl: string,
  owner: { workspaceId: string; surfaceId: string },
  publicKey: string,
  sessionId: string,
): Promise<Pick<Things, 'findingId' | 'traceId' | 'spanId' | 'metricName' | 'receiptId'>> {
  const headers = { 'x-service-public-key': publicKey }
  const send = (path: string, body: unknown, more: Record<string, string> = {}) =>
    expectOk(call(edgeUrl, `POST ${path}`, { body, headers: { ...headers, ...more } }))
  const source = { type: 'custom', name: 'ours' }
  await send('/v3/session/identify', { sessionId, identifier: userIdentifierOf(owner.workspaceId), source })
  const events = `${JSON.stringify({ type: 2, timestamp: 1_700_000_000_000, data: owner.workspaceId })}\n`
  for (const segmentId of [0, 1]) {
    const metadata = encodeReplayMetadata({ windowId: 'w', segmentId, firstTs: 1, lastTs: 2 })
    await send(`/v3/replay/upload/${sessionId}`, events, { 'x-replay-metadata': metadata })
  }
  const exportTrace = async () => {
    const { traceId, spanId, findingId, body } = exampleExport(owner, Date.now())
    const response = await fetch(`${edgeUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-protobuf' },
      body,
    })
    if (!response.ok) throw new Error(`the export was answered ${response.status}`)
    await send('/drain/v1/logs', logsOf(owner.workspaceId, { traceId, spanId, sessionId }))
    return { traceId, spanId, findingId, receiptId: response.headers.get(RECEIPT_HEADER) ?? '' }
  }
  await exportTrace()
  const damaged = await fetch(`${edgeUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' },
    body: Buffer.concat([gzipSync(owner.workspaceId).subarray(0, 20), Buffer.alloc(20, 1)]),
  })
  if (!damaged.ok) throw new Error(`the damaged export was answered ${damaged.status}`)
  const metricName = `metric.${hex(8)}`
  const point = { timeUnixNano: `${Date.now()}000000`, asInt: '1' }
  const metrics = [{ name: metricName, gauge: { dataPoints: [point] } }]
  await send('/drain/v1/metrics', { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
  return { ...(await exportTrace()), metricName }
}

/** An export of a log record with the time of its arrival. */
function logsOf(text: string, { traceId, spanId, sessionId }: Pick<Things, 'traceId' | 'spanId' | 'sessionId'>) {
  const attributes = [{ key: 'session.id', value: { stringValue: sessionId } }]
  const record = { traceId, spanId, severityNumber: 9, body: { stringValue: text }, attributes }
  return { resourceLogs: [{ scopeLogs: [{ logRecords: [record] }] }] }
}

async function expectOk<A extends Pick<Answer, 'status' | 'body'>>(answer: Promise<A>): Promise<A> {
  const { status, body } = await answer
  if (status !== 200 && status !== 201) throw new Error(`answered ${status} ${JSON.stringify(body)}`)
  return answer
}
