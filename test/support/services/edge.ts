import { pino } from 'pino'
import { ingestConfigSchema } from '../../../ingest/config.ts'
import { connectEdge } from '../../../ingest/connect.ts'
import { createGrpcMethods } from '../../../ingest/routes/grpc-methods.ts'
import { createIngestRoutes } from '../../../ingest/routes.ts'
import type { SurfaceKey } from '../../../schemas/records/directory.ts'
import { type Directory, newId } from '../../../shared/directory/directory.ts'
import { createGrpcServer } from '../../../shared/http/grpc/server.ts'
import type { Route } from '../../../shared/http/route.ts'
import { createHttpServer } from '../../../shared/http/server/server.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { createLifecycle } from '../../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { until } from '../until.ts'

/** Edge that runs in this process. */
export interface TestEdge {
  readonly baseUrl: string
  readonly port: number
  /** Port of gRPC. */
  readonly grpcPort: number
  /** Bytes of bodies in memory. */
  readonly heldBodyBytes: number
  readonly routes: readonly Route[]
  /** Returns true, or the reason that /readyz names. */
  isReady(): true | string
  /** Returns the text of /metrics. */
  metrics(): Promise<string>
  stop(): Promise<void>
}

/** Starts the edge in this process on a free port, and waits until it is ready. `now` is when requests arrive. */
export async function startEdge(
  redisUrl: string,
  settings: Record<string, string> = {},
  logger: Logger = pino({ level: 'silent' }),
  now: () => number = Date.now,
): Promise<TestEdge> {
  const edge = await openEdge(redisUrl, settings, logger, now)
  await until('the edge is ready', () => edge.isReady() === true)
  return edge
}

/** Starts the edge in this process on a free port. */
export async function openEdge(
  redisUrl: string,
  settings: Record<string, string> = {},
  logger: Logger = pino({ level: 'silent' }),
  now: () => number = Date.now,
): Promise<TestEdge> {
  const lifecycle = createLifecycle(logger, 5_000)
  const config = parseConfig(ingestConfigSchema, { REDIS_URL: redisUrl, DIRECTORY_REDIS_URL: redisUrl, ...settings })
  const metrics = createMetrics('test')
  const edge = connectEdge(config, logger, metrics, lifecycle, now)
  const routes = createIngestRoutes(edge.deps)
  const server = createHttpServer({
    routes,
    logger,
    heldBodyLimitBytes: config.HELD_BODY_BYTES,
  })
  lifecycle.onStop('server', () => server.close(1_000))
  lifecycle.onStop('waits', () => edge.endWaits())
  const port = await server.listen('127.0.0.1', 0)
  const grpc = createGrpcServer(createGrpcMethods(edge.deps, edge.isReady), {
    ...{ logger, bodies: server.bodies, open: new Set(), observe: () => {}, onRefused: () => {} },
  })
  lifecycle.onStop('gRPC', () => grpc.close(1_000))
  const grpcPort = await grpc.listen('127.0.0.1', 0)
  return {
    grpcPort,
    get heldBodyBytes() {
      return server.heldBodyBytes
    },
    isReady: edge.isReady,
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    routes,
    metrics: () => metrics.registry.metrics(),
    stop: () => lifecycle.stop('test'),
  }
}

/** Stores a key of a surface and returns its text. */
export async function issueKey(directory: Directory, key: Partial<SurfaceKey> = {}): Promise<string> {
  const kind = key.kind ?? 'public'
  const secret = generateKey(kind)
  await directory.putSurfaceKey({
    version: 1,
    id: newId('key'),
    kind,
    digest: digestOf(secret),
    prefix: secret.slice(3, 6),
    ...(kind === 'public' && { publicKey: secret }),
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    scopes: [],
    createdAt: new Date().toISOString(),
    expiresAt: null,
    revokedAt: null,
    ...key,
  })
  return secret
}
