import { generateKeyPairSync, hash, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { Redis } from 'ioredis'
import { SignJWT } from 'jose'
import { pino } from 'pino'
import { createResourceRoutes } from '../../../api/auth/protected-resource.ts'
import { apiConfigSchema } from '../../../api/config.ts'
import { connectApi } from '../../../api/connect.ts'
import { createActRoutes } from '../../../api/findings/act/act-routes.ts'
import { createApiRoutes } from '../../../api/routes.ts'
import { type ClickHouseClient, insertNative } from '../../../clickhouse/client.ts'
import { type FindingMove, FindingMovesTable } from '../../../clickhouse/tables/finding-moves-table.ts'
import { PERMISSIONS, type Permission } from '../../../schemas/records/directory.ts'
import { DAY_S, MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import type { Route } from '../../../shared/http/route.ts'
import { createHttpServer } from '../../../shared/http/server/server.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { createLifecycle } from '../../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { blocksOf } from '../../../workers/sink/row-batch.ts'
import { clusterSettings, connectDatabase, migrateDatabase } from '../cluster/connect.ts'
import { packAttributes } from '../pack-attributes.ts'
import { until } from '../until.ts'

/** Issuer of the session tokens. */
export const ISSUER = 'https://login.test'
/** Audience of the session tokens. */
export const AUDIENCE = 'penstock'
/** Key pair that signs the session tokens. */
const sessionKeys = generateKeyPairSync('ed25519')
/** Public key of the session tokens, as PEM. */
export const sessionPublicKeyPem = String(sessionKeys.publicKey.export({ type: 'spki', format: 'pem' }))

/** API that runs in this process. */
export interface TestApi {
  readonly baseUrl: string
  readonly routes: readonly Route[]
  /** Returns the text of /metrics. */
  metrics(): Promise<string>
  stop(): Promise<void>
}

/** The key that seals the secrets of receivers. */
export const DELIVERY_KEY = Buffer.alloc(32, 'delivery').toString('base64')

/** Returns the settings of an API on these servers. */
export function apiConfig(
  services: { redisUrl: string; clickhouseUrl: string },
  database: string,
  settings: Record<string, string | undefined> = {},
) {
  return parseConfig(apiConfigSchema, {
    REDIS_URL: services.redisUrl,
    DIRECTORY_REDIS_URL: services.redisUrl,
    CLICKHOUSE_URL: services.clickhouseUrl,
    ...clusterSettings(services.clickhouseUrl),
    CLICKHOUSE_DATABASE: database,
    AUTH_PUBLIC_KEY: sessionPublicKeyPem,
    AUTH_ISSUER: ISSUER,
    AUTH_AUDIENCE: AUDIENCE,
    KEY_PEPPER: 'the pepper of the tests, 32 bytes and more',
    DELIVERY_KEY,
    ...settings,
  })
}

/** The database of tests that read nothing from ClickHouse. An API is not ready with it, and serves all else. */
const WITHOUT_TABLES = 'default'

/** Starts the API in this process on a free port, and waits until it is ready. */
export async function startApi(
  services: { redisUrl: string; clickhouseUrl: string },
  database: string,
  settings: Record<string, string | undefined> = {},
  now: () => number = Date.now,
  logger: Logger = pino({ level: 'silent' }),
): Promise<TestApi> {
  const lifecycle = createLifecycle(logger, 5_000)
  const config = apiConfig(services, database, settings)
  const metrics = createMetrics('test')
  const api = connectApi(config, logger, metrics, lifecycle, now)
  const routes = [...createApiRoutes(api.deps), ...createResourceRoutes(config)]
  const server = createHttpServer({
    routes: [...routes, ...createActRoutes(api.deps)],
    logger,
    heldBodyLimitBytes: MIB,
  })
  lifecycle.onStop('server', () => server.close(1_000))
  const port = await server.listen('127.0.0.1', 0)
  let health: unknown
  const isReady = async () => {
    health = await api.isReady()
    return health === true || (database === WITHOUT_TABLES && /^clickhouse: .*run npm run migrate/.test(String(health)))
  }
  await until('the API is ready', isReady).catch(cause => {
    throw new Error(`the API is not ready: ${health}`, { cause })
  })
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    routes,
    metrics: () => metrics.registry.metrics(),
    stop: () => lifecycle.stop('test'),
  }
}

/** Response with a parsed body. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
}

/** Credential, body and headers of a request. */
export interface Call {
  /** Text after `Bearer`; without it no authorization header is sent. */
  readonly bearer?: string | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a request; a body that is not a text is sent as JSON, and a JSON response is parsed. */
export async function call(baseUrl: string, operation: string, request: Call = {}): Promise<Answer> {
  const [method = '', path = ''] = operation.split(' ')
  const { bearer, body, headers } = request
  const response = await fetch(baseUrl + path, {
    method,
    headers: {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
}

/** Expiry of a token that is valid for nearly as long as a token may be. */
export const FAR_EXPIRY = Math.floor(Date.now() / 1_000) + 29 * DAY_S

/** Signs a session token of a user, which is valid unless its claims are changed. */
export function signToken(claims: Record<string, unknown> = {}): Promise<string> {
  const nowSeconds = Math.floor(Date.now() / 1_000)
  const payload = { iss: ISSUER, aud: AUDIENCE, sub: 'user_1', org: 'acme', exp: nowSeconds + 3_600, ...claims }
  return new SignJWT(payload).setProtectedHeader({ alg: 'EdDSA' }).sign(sessionKeys.privateKey)
}

/** Stores a workspace with one member. */
export async function putWorkspace(
  redisUrl: string,
  workspace: { id: string; slug: string; userId?: string; permissions?: readonly Permission[] },
): Promise<void> {
  const redis = new Redis(redisUrl)
  const store = createDirectory(redis)
  const createdAt = new Date().toISOString()
  await store.putWorkspace({ version: 1, id: workspace.id, slug: workspace.slug, name: workspace.slug, createdAt })
  const permissions = [...(workspace.permissions ?? PERMISSIONS)]
  await store.putMember({ version: 1, workspaceId: workspace.id, userId: workspace.userId ?? 'user_1', permissions })
  await redis.quit()
}

/** Creates a database with the schema and returns a client of it. */
export async function createDatabase(url: string, database: string): Promise<ClickHouseClient> {
  await migrateDatabase(url, database)
  return connectDatabase(url, database)
}

/** Span to insert; absent fields have defaults. */
export interface StoredSpan {
  workspaceId?: string
  surfaceId?: string
  traceId: string
  spanId: string
  /** Empty for a root span. */
  parentSpanId?: string
  name?: string
  kind?: number
  serviceName?: string
  startTimeUnixNano?: bigint
  endTimeUnixNano?: bigint
  statusCode?: number
  statusMessage?: string
  sessionId?: string
  httpRoute?: string
  httpStatusCode?: number
  /** All of them are texts. */
  attributes?: Readonly<Record<string, string>>
  /** Time of arrival in Unix milliseconds. */
  receivedAt?: number
}

/** Default start of spans in Unix nanoseconds. */
export const START = 1_790_000_000_000_000_000n

/** Inserts spans. */
export async function insertSpans(client: ClickHouseClient, spans: readonly StoredSpan[]): Promise<void> {
  const rows = spans.map(span => ({
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    parentSpanId: '',
    name: `span ${span.spanId}`,
    kind: 1,
    serviceName: 'shop',
    startTimeUnixNano: START,
    endTimeUnixNano: START + 1_000_000n,
    statusCode: 0,
    statusMessage: '',
    sessionId: '',
    httpRoute: '',
    httpStatusCode: 0,
    receivedAt: Date.now(),
    ...span,
    attributes: packAttributes(span.attributes ?? {}),
  }))
  const columns = `workspace_id, surface_id, received_at, trace_id, span_id, parent_span_id, name, kind, service_name,
    start_time_unix_nano, end_time_unix_nano, status_code, status_message, session_id, http_route, http_status_code,
    attribute_keys, attribute_values`
  const structure = `workspaceId String, surfaceId String, receivedAt Int64, traceId String, spanId String,
    parentSpanId String, name String, kind UInt8, serviceName String, startTimeUnixNano UInt64, endTimeUnixNano UInt64, statusCode UInt8,
    statusMessage String, sessionId String, httpRoute String, httpStatusCode UInt16,
    attributes Tuple(keys String, values String)`
  await insertRows(
    client,
    `INSERT INTO spans (${columns})
     SELECT workspaceId, surfaceId, fromUnixTimestamp64Milli(receivedAt), unhex(traceId), unhex(spanId),
       unhex(parentSpanId), name, kind, serviceName, startTimeUnixNano, endTimeUnixNano, statusCode, statusMessage, sessionId, httpRoute,
       httpStatusCode, attributes.keys, attributes.values
     FROM input('${structure}')`,
    rows,
  )
}

/** Occurrence to insert; absent fields have defaults. */
interface StoredException {
  workspaceId?: string
  findingId: string
  /** 16 bytes as hexadecimal digits. By default, exceptions of a finding with the same version, type and stack have the same. */
  variantId?: string
  traceId: string
  spanId?: string
  source?: 'span_event' | 'log_record' | 'span_status'
  type?: string
  message?: string
  stacktrace?: string
  serviceName?: string
  surfaceId?: string
  occurredAtUnixNano?: bigint
  receivedAt?: number
  /** By default the time of the server. */
  storedAt?: number
  serviceVersion?: string
  sessionId?: string
  environment?: string
}

/** Inserts occurrences; the views of the schema derive findings from them. */
export async function insertExceptions(
  client: ClickHouseClient,
  exceptions: readonly StoredException[],
): Promise<void> {
  const rows = exceptions.map(exception => ({
    workspaceId: 'ws_1',
    type: 'TypeError',
    message: 'x is not a function',
    stacktrace: '',
    serviceName: 'shop',
    surfaceId: 'srf_1',
    occurredAtUnixNano: START,
    receivedAt: Date.now(),
    storedAt: 0,
    spanId: '00000000000000aa',
    source: 'span_event',
    serviceVersion: '',
    sessionId: '',
    environment: '',
    ...exception,
    variantId: exception.variantId ?? variantOf(exception),
  }))
  const structure = `workspaceId String, surfaceId String, receivedAt Int64, storedAt Int64, variantId String, findingId String,
    traceId String, spanId String, source String, occurredAtUnixNano UInt64, serviceName String, serviceVersion String, sessionId String,
    type String, message String, stacktrace String, environment String`
  await insertRows(
    client,
    `INSERT INTO exceptions (workspace_id, surface_id, received_at, stored_at, variant_id, finding_id, trace_id, span_id,
       occurred_at_unix_nano, service_name, service_version, session_id, type, message, stacktrace, source, environment)
     SELECT workspaceId, surfaceId, fromUnixTimestamp64Milli(receivedAt),
       if(storedAt = 0, now64(3), fromUnixTimestamp64Milli(storedAt)), unhex(variantId), findingId, unhex(traceId),
       unhex(spanId), occurredAtUnixNano, serviceName, serviceVersion, sessionId, type, message, stacktrace, source,
       environment
     FROM input('${structure}')`,
    rows,
  )
}

/** Returns the variant of an occurrence, as 32 hexadecimal digits. */
export function variantOf({
  findingId,
  serviceVersion = '',
  type = '',
  stacktrace = '',
}: Omit<StoredException, 'traceId'>): string {
  return hash('sha256', JSON.stringify([findingId, serviceVersion, type, stacktrace])).slice(0, 32)
}

/** Moves the variant of an occurrence to another finding, as symbolication does. */
export async function moveVariant(
  client: ClickHouseClient,
  occurrence: StoredException,
  { findingId, rank }: Pick<FindingMove, 'findingId' | 'rank'>,
): Promise<void> {
  const { workspaceId = 'ws_1' } = occurrence
  const variantId = occurrence.variantId ?? variantOf(occurrence)
  const table = new FindingMovesTable()
  table.append({ workspaceId, variantId, findingId, rank })
  for (const { table: name, columns, block } of blocksOf([table.buffer])) {
    await insertNative(client, { table: name, columns, block, deduplicationToken: randomUUID(), timeoutMs: 20_000 })
  }
}

async function insertRows(client: ClickHouseClient, query: string, rows: readonly object[]): Promise<void> {
  const lines = rows.map(row => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value)))
  const { stream } = await client.exec({
    query: `${query} FORMAT JSONEachRow`,
    values: Readable.from([Buffer.from(lines.join('\n'))], { objectMode: false }),
    clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
  })
  for await (const _ of stream);
}
