import { createAdminServer } from '../shared/admin-server.ts'
import { parseConfig } from '../shared/config.ts'
import { createHttpServer } from '../shared/http-server.ts'
import { createLifecycle, runUntilSignal } from '../shared/lifecycle.ts'
import { createLogger } from '../shared/logger.ts'
import { createMetrics } from '../shared/metrics.ts'
import { createRequestObserver } from '../shared/request-metrics.ts'
import { ingestConfigSchema } from './config.ts'
import { connectEdge } from './edge.ts'
import { createIngestRoutes } from './server.ts'

const config = parseConfig(ingestConfigSchema, process.env)
const logger = createLogger('ingest', config.LOG_LEVEL)
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('ingest')
const edge = connectEdge(config, logger, metrics, lifecycle)
let draining = false

const server = createHttpServer({
  routes: createIngestRoutes(edge.deps),
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
logger.info({ port }, 'the edge is listening')
