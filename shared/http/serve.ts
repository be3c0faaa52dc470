import { setTimeout as delay } from 'node:timers/promises'
import { type AdminServer, createAdminServer } from '../runtime/admin-server.ts'
import { type Lifecycle, runUntilSignal } from '../runtime/lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { Health } from '../runtime/process/health.ts'
import { listenAt } from '../runtime/process/listen-at.ts'
import { openFilesWarning } from '../runtime/process/open-files.ts'
import type { GrpcMethod } from './grpc/exchange.ts'
import { createGrpcServer, type GrpcServer } from './grpc/server.ts'
import { openApiRoute } from './openapi-route.ts'
import type { Route } from './route.ts'
import { SERVER_LIMITS, type ServerLimit } from './server/problem.ts'
import { createRequestObserver } from './server/request-metrics.ts'
import { createHttpServer, type HttpServer } from './server/server.ts'

/** A process that serves HTTP. */
interface ServedProcess {
  /** Its routes, without `/openapi.json`, which every process serves. */
  readonly routes: readonly Route[]
  /** The port of HTTP; undefined if the process serves gRPC alone. */
  readonly port: number | undefined
  /** The methods of gRPC and their port, if the process serves them. */
  readonly grpc?: { readonly methods: ReadonlyMap<string, GrpcMethod>; readonly port: number } | undefined
  readonly adminPort: number
  /** Prefix of the settings of its ports: `INGEST` of INGEST_PORT, INGEST_ADMIN_PORT and INGEST_GRPC_PORT. */
  readonly settingsPrefix: 'INGEST' | 'API'
  readonly settings: {
    readonly BIND_HOST: string
    readonly ADMIN_BIND_HOST: string
    readonly MAX_CONNECTIONS: number
    readonly HELD_BODY_BYTES: number
    readonly IDENTITY_PROVIDERS: readonly string[]
    readonly PUBLIC_URL?: string | undefined
    readonly SHUTDOWN_DEADLINE_MS: number
    readonly DRAIN_DELAY_MS: number
  }
  readonly isReady: () => Health | Promise<Health>
  /** Ends the waits of requests when the process is about to stop. */
  readonly endWaits?: () => void
  /** Returns the document of `/queues` on the admin port. */
  readonly readQueues?: () => Promise<object>
  readonly logger: Logger
  readonly metrics: Metrics
  /** Already contains what the routes need, so that it stops after the server. */
  readonly lifecycle: Lifecycle
}

/**
 * Serves the routes, and health and metrics on the admin port, until SIGTERM. Then it reports not ready, drains and
 * stops.
 */
export async function serve(served: ServedProcess): Promise<void> {
  const { settings, logger, metrics, lifecycle } = served
  runUntilSignal(lifecycle, logger)
  let draining = false
  let isListening = false
  const observe = createRequestObserver(metrics)
  const onRefused = countRefusals(metrics)
  const server = createHttpServer({
    routes: [
      ...served.routes,
      openApiRoute({ identityProviders: settings.IDENTITY_PROVIDERS, publicUrl: settings.PUBLIC_URL }),
    ],
    logger,
    heldBodyLimitBytes: settings.HELD_BODY_BYTES,
    connectionsLimit: settings.MAX_CONNECTIONS,
    observe,
    onRefused,
  })
  const grpc =
    served.grpc &&
    createGrpcServer(served.grpc.methods, { logger, bodies: server.bodies, open: new Set(), observe, onRefused })
  watchConnections(metrics, server, grpc)
  const admin = createAdminServer({
    registry: metrics.registry,
    isLive: () => true,
    isReady: () => (draining ? 'draining' : served.isReady()),
    ...(served.readQueues && { readQueues: served.readQueues }),
    logger,
  })
  lifecycle.onStop('admin server', () => admin.close())
  const closeMs = settings.SHUTDOWN_DEADLINE_MS / 2
  lifecycle.onStop('server', async () => {
    await Promise.all([server.close(closeMs), grpc?.close(closeMs)])
  })
  lifecycle.onStop('readiness', async () => {
    draining = true
    server.askToLeave()
    grpc?.askToLeave()
    if (isListening) await delay(settings.DRAIN_DELAY_MS)
    served.endWaits?.()
  })

  const warning = openFilesWarning(settings.MAX_CONNECTIONS)
  if (warning !== undefined) logger.warn(warning)
  const ports = await listen(served, { admin, server, grpc })
  isListening = true
  logger.info(ports, 'listening')
}

/** Listens on the admin port first, so that probes see a process that starts. Throws a ConfigError for a port in use. */
async function listen(
  { settings, settingsPrefix: prefix, port, adminPort, grpc: served }: ServedProcess,
  { admin, server, grpc }: { admin: AdminServer; server: HttpServer; grpc: GrpcServer | undefined },
): Promise<{ port: number | undefined; grpcPort: number | undefined }> {
  const { BIND_HOST, ADMIN_BIND_HOST } = settings
  const forClients = { host: BIND_HOST, hostSetting: 'BIND_HOST' } as const
  const forProbes = { host: ADMIN_BIND_HOST, hostSetting: 'ADMIN_BIND_HOST' } as const
  await listenAt(admin, { ...forProbes, port: adminPort, portSetting: `${prefix}_ADMIN_PORT` })
  const at = (name: string, number: number) => ({ ...forClients, port: number, portSetting: `${prefix}_${name}` })
  return {
    port: port === undefined ? undefined : await listenAt(server, at('PORT', port)),
    grpcPort: grpc && served && (await listenAt(grpc, at('GRPC_PORT', served.port))),
  }
}

function countRefusals(metrics: Metrics): (limit: ServerLimit) => void {
  const refusals = metrics.counter({
    name: 'penstock_server_refusals_total',
    help: 'Refused for a limit of the server: memory of bodies, bodies that arrive at once or too slowly, connections.',
    labelNames: ['limit'],
  })
  for (const limit of SERVER_LIMITS) refusals.inc({ limit }, 0)
  return limit => refusals.inc({ limit })
}

function watchConnections(metrics: Metrics, server: HttpServer, grpc: GrpcServer | undefined): void {
  metrics.gauge({
    name: 'penstock_connections',
    help: 'Open connections of clients.',
    collect() {
      this.set(server.connections + (grpc?.connections ?? 0))
    },
  })
  metrics.gauge({
    name: 'penstock_held_body_bytes',
    help: 'Bytes of request bodies in memory.',
    collect() {
      this.set(server.heldBodyBytes)
    },
  })
}
