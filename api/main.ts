import { createAdminServer } from '../shared/admin-server.ts'
import { parseConfig } from '../shared/config.ts'
import { createHttpServer } from '../shared/http-server.ts'
import { createLifecycle, runUntilSignal } from '../shared/lifecycle.ts'
import { createLogger } from '../shared/logger.ts'
import { createMetrics } from '../shared/metrics.ts'
import { createRequestObserver } from '../shared/request-metrics.ts'
import { apiConfigSchema } from './config.ts'
import { connectApi } from './connect-api.ts'
import { createApiRoutes } from './server.ts'

const config = parseConfig(apiConfigSchema, process.env)
const logger = createLogger('api', config.LOG_LEVEL)
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('api')
const api = connectApi(config, logger, lifecycle)
let draining = false

const server = createHttpServer({
  routes: createApiRoutes(api.deps),
  logger,
  heldBodyLimitBytes: config.HELD_BODY_BYTES,
  observe: createRequestObserver(metrics),
})
const admin = createAdminServer({
  registry: metrics.registry,
  isLive: () => true,
  isReady: () => (draining ? 'draining' : api.isReady()),
  logger,
})
lifecycle.onStop('admin server', () => admin.close())
lifecycle.onStop('server', () => server.close(config.SHUTDOWN_DEADLINE_MS / 2))
lifecycle.onStop('readiness', () => {
  draining = true
})

await admin.listen(config.BIND_HOST, config.API_ADMIN_PORT)
const port = await server.listen(config.BIND_HOST, config.API_PORT)
runUntilSignal(lifecycle, logger)
logger.info({ port }, 'the API is listening')
