import { apiConfigSchema } from '../../api/config.ts'
import { connectApi } from '../../api/connect-api.ts'
import { createApiRoutes } from '../../api/server.ts'
import { ingestConfigSchema } from '../../ingest/config.ts'
import { connectEdge } from '../../ingest/edge.ts'
import { createIngestRoutes } from '../../ingest/server.ts'
import { createAdminServer } from '../../shared/admin-server.ts'
import { parseConfig } from '../../shared/config.ts'
import { createHttpServer } from '../../shared/http-server.ts'
import { createLifecycle, runUntilSignal } from '../../shared/lifecycle.ts'
import { createLogger } from '../../shared/logger.ts'
import { createMetrics } from '../../shared/metrics.ts'
import { createRequestObserver } from '../../shared/request-metrics.ts'

/**
 * Every operation at one base address (spec section 9), as an ingress does it by path in production: the routes of the
 * edge and of the API on one server. It is ready when the edge is; ClickHouse is not on the accept path here either.
 */
const config = parseConfig(ingestConfigSchema, process.env)
const apiConfig = parseConfig(apiConfigSchema, process.env)
const logger = createLogger('edge', config.LOG_LEVEL)
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('edge')
const api = connectApi(apiConfig, logger, lifecycle)
const edge = connectEdge(config, logger, metrics, lifecycle)
let draining = false

const server = createHttpServer({
  routes: [...createIngestRoutes(edge.deps), ...createApiRoutes(api.deps)],
  logger,
  heldBodyLimitBytes: config.HELD_BODY_BYTES,
  observe: createRequestObserver(metrics),
})
const admin = createAdminServer({
  registry: metrics.registry,
  isLive: () => true,
  isReady: () => (draining ? 'draining' : edge.isReady()),
  logger,
})
lifecycle.onStop('admin server', () => admin.close())
lifecycle.onStop('server', () => server.close(config.SHUTDOWN_DEADLINE_MS / 2))
lifecycle.onStop('readiness', () => {
  draining = true
  edge.endWaits()
})

await admin.listen(config.BIND_HOST, config.INGEST_ADMIN_PORT)
const port = await server.listen(config.BIND_HOST, config.INGEST_PORT)
runUntilSignal(lifecycle, logger)
logger.info({ port }, 'all operations are served here')
