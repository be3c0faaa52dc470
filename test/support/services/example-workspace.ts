import { hash } from 'node:crypto'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { keepAttempt } from '../../../alerts/calling/attempts.ts'
import { openDeliveryQueue } from '../../../alerts/calling/delivery-queue.ts'
import { sealTarget } from '../../../alerts/calling/targets.ts'
import { Sealing } from '../../../alerts/delivery/sealing.ts'
import { createWebhookSecret } from '../../../alerts/delivery/standard-webhooks.ts'
import { createClickHouse } from '../../../clickhouse/client.ts'
import type { LetterKey } from '../../../clickhouse/queries/letters/letter.ts'
import { readLetterId } from '../../../letters/letter-id.ts'
import { listDeliveries } from '../../../schemas/http/alerts/deliveries.ts'
import { replaceAlerts } from '../../../schemas/http/alerts/operations.ts'
import { EXAMPLE } from '../../../schemas/http/example-values.ts'
import type { Operation } from '../../../schemas/http/operation.ts'
import { workspaceKeyCreatedSchema } from '../../../schemas/http/workspaces/schemas.ts'
import { QUEUES } from '../../../schemas/queues/names.ts'
import type { Alerts, Attempt } from '../../../schemas/records/alerts.ts'
import { PERMISSIONS } from '../../../schemas/records/directory.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { openApiRoute } from '../../../shared/http/openapi-route.ts'
import type { Route } from '../../../shared/http/route.ts'
import { createHttpServer } from '../../../shared/http/server/server.ts'
import { hashOfSession } from '../../../shared/ids/session-hash.ts'
import { deadLetterKey } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { encodeLetters, LETTER_CONTENT_TYPE } from '../../../shared/queue/letters/letter-object.ts'
import { exampleDelivery } from '../alerts/example-deliveries.ts'
import { connectDatabase } from '../cluster/connect.ts'
import { packedAttributes, packedNumbers } from '../packed-sql.ts'
import { insertLogs } from '../workspaces/log-rows.ts'
import { registerRelease } from '../workspaces/stored-releases.ts'
import { call, DELIVERY_KEY, insertExceptions, putWorkspace, signToken, startApi } from './api.ts'
import { issueKey, startEdge } from './edge.ts'
import { startPools } from './pools.ts'
import { type ServiceAddresses, s3Settings } from './services.ts'
import { createTestDatabase } from './test-database.ts'
import { startWorkloadIssuer } from './workload-issuer.ts'

const { workspaceId, workspaceSlug, userId, surfaceId } = EXAMPLE
const OWNER = { workspaceId, surfaceId }

/** Every operation at one URL, with the workspace of the examples in the document. */
export interface ExampleWorkspace {
  readonly baseUrl: string
  readonly routes: readonly Route[]
  /** Credentials by the names of the security schemes. */
  readonly credentials: Readonly<Record<string, string>>
  /** Tokens of callers without the necessary organization or permission. */
  readonly powerless: { readonly withoutOrg: string; readonly withoutPermissions: string }
  /** Stores again what the examples of DELETE have removed. */
  restore(): Promise<void>
  stop(): Promise<void>
}

/** Starts edge, API and workers with the example workspace; `redisUrl` names a database of Redis, which is emptied first. */
export async function startExampleWorkspace(services: ServiceAddresses, redisUrl: string): Promise<ExampleWorkspace> {
  const redis = new Redis(redisUrl)
  await redis.flushdb()
  const directory = createDirectory(redis)
  await putWorkspace(redisUrl, { id: workspaceId, slug: workspaceSlug, userId })
  await putWorkspace(redisUrl, { id: workspaceId, slug: workspaceSlug, userId: 'user_none', permissions: [] })
  const database = await createTestDatabase(services.clickhouseUrl, `openapi_${process.pid}`)
  const workloads = await startWorkloadIssuer()
  const objectStore = s3Settings(services.s3)
  const edge = await startEdge(redisUrl, objectStore)
  const api = await startApi({ ...services, redisUrl }, database.name, { ...workloads.settings, ...objectStore })
  const pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
  const routes = [...edge.routes, ...api.routes, openApiRoute({ identityProviders: ['Auth0', 'Clerk', 'Supabase'] })]
  const logger = pino({ level: 'silent' })
  const server = createHttpServer({ routes, logger, heldBodyLimitBytes: 64 * MIB })
  const baseUrl = `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}`

  await restore(directory)
  await storeExampleLetter(services, database.name)
  await storeExampleLog(services, database.name)
  await storeExamplePoint(services, database.name)
  await storeExampleFinding(services, database.name)
  await storeExampleOutcomes(services, database.name)
  await storeExampleReceiver(redis)
  const sessionToken = await signToken({ sub: userId, org: workspaceSlug })
  const publicKey = await issueKey(directory, OWNER)
  return {
    baseUrl,
    routes,
    credentials: {
      sessionToken,
      publicKeyHeader: publicKey,
      publicKeyQuery: publicKey,
      secretKey: await issueKey(directory, { ...OWNER, kind: 'secret', scopes: ['release:write'] }),
      workspaceKey: await makeWorkspaceKey(baseUrl, sessionToken),
      workloadIdentity: await workloads.sign({ org: workspaceSlug }),
    },
    powerless: {
      withoutOrg: await signToken({ sub: userId, org: undefined }),
      withoutPermissions: await signToken({ sub: 'user_none', org: workspaceSlug }),
    },
    async restore() {
      await restore(directory)
      await registerRelease(createReleaseStore(redis), { ...OWNER, slug: EXAMPLE.releaseSlug, name: EXAMPLE.version })
    },
    async stop() {
      await pools.stop()
      await server.close(1_000)
      await api.stop()
      await edge.stop()
      await workloads.stop()
      await database.drop()
      redis.disconnect()
    },
  }
}

const ERASED = {
  id: EXAMPLE.erasureId,
  state: 'done',
  rows: { spans: 41, session_identities: 2, replay_chunks: 3 },
} as const

/** Stores the surface, a key of it and a workspace key under the ids of the examples. */
async function restore(directory: Directory): Promise<void> {
  const createdAt = new Date().toISOString()
  await directory.putMember({ version: 1, workspaceId, userId: EXAMPLE.memberId, permissions: ['org:findings:read'] })
  await directory.putSurface({ version: 1, id: surfaceId, workspaceId, name: 'Shop', createdAt })
  await issueKey(directory, { ...OWNER, id: EXAMPLE.surfaceKeyId })
  const begun = {
    workspaceId,
    subject: { kind: 'identifier', identifier: 'user-1' },
    now: Date.now(),
    author: { by: { userId, apiKeyId: null }, now: Date.now() },
  } as const
  const erasure = await directory.createErasure(begun)
  if (typeof erasure === 'object') await directory.putErasure({ ...erasure, ...ERASED })
  await directory.createWorkspaceKey({
    version: 1,
    id: EXAMPLE.apiKeyId,
    workspaceId,
    name: 'Terraform',
    scopes: ['org:surfaces:read'],
    digest: hash('sha256', EXAMPLE.apiKeyId),
    prefix: 'wk_4Fq',
    createdBy: userId,
    createdAt,
    expiresAt: null,
    revokedAt: null,
  })
}

/** Stores the receiver of the examples, and an attempt to send something to it. */
async function storeExampleReceiver(redis: Redis): Promise<void> {
  const { receivers, rules } = exampleOf<Pick<Alerts, 'receivers' | 'rules'>>(replaceAlerts.success.contents)
  const sealing = new Sealing({ key: DELIVERY_KEY })
  const stored = receivers.map(receiver => {
    const target = { channel: 'webhook' as const, url: receiver.address, secrets: [createWebhookSecret()] }
    return { ...receiver, sealed: sealTarget(sealing, workspaceId, receiver.id, target) }
  })
  const author = { by: null, now: Date.now() }
  await createDirectory(redis).replaceAlerts({ workspaceId, revision: 0, receivers: stored, rules }, author)
  const { attempts } = exampleOf<{ readonly attempts: readonly Attempt[] }>(listDeliveries.success.contents)
  for (const attempt of attempts) await keepAttempt(redis, workspaceId, attempt)
  const queue = openDeliveryQueue(redis)
  await queue.add(attempts.map(({ receiverId, ruleName }) => exampleDelivery({ receiverId, ruleName, workspaceId })))
  await queue.close()
}

function exampleOf<T>({ 'application/json': json }: Operation['success']['contents']): T {
  if (json === undefined) throw new Error('the operation has no example')
  return json.example as T
}

async function makeWorkspaceKey(baseUrl: string, bearer: string): Promise<string> {
  const body = { idempotencyKey: crypto.randomUUID(), name: 'All', scopes: PERMISSIONS, secondsUntilExpiration: null }
  const answer = await call(baseUrl, `POST /v3/workspaces/${workspaceSlug}/api-keys`, { bearer, body })
  return workspaceKeyCreatedSchema.parse(answer.body).apiKey.secret
}

/** Stores an occurrence of the finding that is merged in the examples. */
async function storeExampleFinding({ clickhouseUrl }: ServiceAddresses, database: string): Promise<void> {
  const client = connectDatabase(clickhouseUrl, database)
  const { mergedFindingId: findingId, serviceName, traceId, recordedAtMs } = EXAMPLE
  const occurredAtUnixNano = BigInt(recordedAtMs + 1_000) * 1_000_000n
  await insertExceptions(client, [{ ...OWNER, findingId, serviceName, traceId, occurredAtUnixNano }])
  await client.close()
}

/** Stores the log record of the examples. */
async function storeExampleLog({ clickhouseUrl }: ServiceAddresses, database: string): Promise<void> {
  const { serviceName, version: serviceVersion, traceId, spanId, sessionId, recordedAtMs } = EXAMPLE
  const client = connectDatabase(clickhouseUrl, database)
  const attributes = { 'http.route': '/cart', 'session.id': sessionId }
  const record = { severityNumber: 13, severityText: 'WARNING', body: 'The cart is empty.', attributes }
  const sender = { ...OWNER, serviceName, serviceVersion, traceId, spanId }
  await insertLogs(client, [{ ...sender, ...record, timeUnixNano: BigInt(recordedAtMs) * 1_000_000n }])
  await client.close()
}

/** Stores the dead letter of the examples: its object, and its row. */
async function storeExampleLetter(services: ServiceAddresses, database: string): Promise<void> {
  const { receivedAtMs, jobId, index } = readLetterId(EXAMPLE.deadLetterId) as LetterKey
  const attributes = JSON.stringify({ queue: 'traces', jobId, index, reason: 'refused_by_clickhouse', attributes: '' })
  const source = { ...OWNER, receivedAtMs, contentType: 'application/x-protobuf', contentEncoding: 'identity' } as const
  const { body, metadata, ranges } = encodeLetters([{ ...source, attributes, body: Buffer.from('not protobuf') }])
  const [range] = ranges
  const objectKey = deadLetterKey({ ...OWNER, receivedAtMs, queue: 'traces', jobId })
  const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
  await objects.put(objectKey, body, { contentType: LETTER_CONTENT_TYPE, metadata })
  objects.close()
  const clickhouse = createClickHouse({ url: services.clickhouseUrl, database })
  await clickhouse.command({
    query: `INSERT INTO dead_letters (workspace_id, surface_id, queue, received_at, refused_at, reason, job_id, job_index,
       object_key, object_offset, object_length, body_bytes)
     SELECT '${workspaceId}', '${surfaceId}', 'traces', fromUnixTimestamp64Milli(${receivedAtMs}), now64(3),
       'refused_by_clickhouse', '${jobId}', ${index}, '${objectKey}', ${range?.offset}, ${range?.length}, 12`,
  })
  const sessionHash = `unhex('${hashOfSession(EXAMPLE.sessionId).toString('hex')}')`
  await clickhouse.command({
    query: `INSERT INTO ingest_log (workspace_id, surface_id, received_at, signal, page_requests)
     SELECT '${workspaceId}', '${surfaceId}', now64(3), 'sessions',
       [(${sessionHash}, 'page-1', 0), (${sessionHash}, 'page-1', 1), (${sessionHash}, 'page-1', 3)]`,
  })
  await clickhouse.close()
}

/** Stores the point of the examples: one request of 42 ms. */
async function storeExamplePoint(services: ServiceAddresses, database: string): Promise<void> {
  const clickhouse = createClickHouse({ url: services.clickhouseUrl, database })
  const [keys, values] = packedAttributes("map('http.request.method', 'GET', 'http.route', '/cart')", '[1, 1]')
  await clickhouse.command({
    query: `INSERT INTO metric_points (workspace_id, surface_id, received_at, service_name, metric_name, description, unit, type,
       aggregation_temporality, series_id, start_time_unix_nano, time_unix_nano, attribute_keys, attribute_values, count, sum, bounds,
       counts)
     SELECT '${workspaceId}', '${surfaceId}', now64(3), '${EXAMPLE.serviceName}', '${EXAMPLE.metricName}',
       'Duration of HTTP server requests.', 's', 'histogram', 'delta', 1, ${EXAMPLE.recordedAtMs - 10_000}000000,
       ${EXAMPLE.recordedAtMs}000000, ${keys}, ${values}, 1, 0.042, ${packedNumbers('[0.01, 0.05, 0.1]')},
       ${packedNumbers('arrayMap(count -> toUInt64(count), [0, 1, 0, 0])')}`,
  })
  await clickhouse.close()
}

/** Stores what the examples of the pipeline and the service map name: requests by what became of them, and a call. */
async function storeExampleOutcomes(services: ServiceAddresses, database: string): Promise<void> {
  const clickhouse = createClickHouse({ url: services.clickhouseUrl, database })
  await clickhouse.command({
    query: `INSERT INTO ingest_log (workspace_id, surface_id, received_at, signal, payloads, bytes, rows, discarded)
     SELECT '${workspaceId}', '${surfaceId}', now64(3) - 1, 'traces', 300, 2203011, 15012, map('refused_by_clickhouse', 1)`,
  })
  // The usage lists this surface first.
  await clickhouse.command({
    query: `INSERT INTO ingest_log (workspace_id, surface_id, received_at, signal, payloads, bytes, rows, scrubbed, dropped)
     SELECT '${workspaceId}', 'srf_0', now64(3) - 1, 'traces', 1, 2203, 15, map('credentials', 12), map('health checks', 340)`,
  })
  await clickhouse.command({
    query: `INSERT INTO request_counts (workspace_id, surface_id, signal, outcome, received_hour, requests)
     SELECT '${workspaceId}', '${surfaceId}', 'traces', 'refused-429', toStartOfHour(now()), 12`,
  })
  await clickhouse.command({
    query: `INSERT INTO service_edges (workspace_id, surface_id, received_at, minute, caller, callee, has_caller, has_callee, calls,
       durations, caller_durations)
     SELECT '${workspaceId}', '${surfaceId}', now64(3), toStartOfMinute(fromUnixTimestamp64Milli(${EXAMPLE.recordedAtMs})),
       'storefront', '${EXAMPLE.serviceName}', true, true, 1, map(700, 1), map(700, 1)`,
  })
  await clickhouse.close()
}
