import { serve } from '../shared/http/serve.ts'
import { answerVersion, BUILD } from '../shared/runtime/build-info.ts'
import { parseConfig } from '../shared/runtime/config.ts'
import { createLifecycle } from '../shared/runtime/lifecycle.ts'
import { createLogger } from '../shared/runtime/logger.ts'
import { createMetrics } from '../shared/runtime/metrics.ts'
import { createResourceRoutes } from './auth/protected-resource.ts'
import { apiConfigSchema } from './config.ts'
import { connectApi } from './connect.ts'
import { createConsoleRoutes } from './console/console-routes.ts'
import { createApiRoutes } from './routes.ts'

answerVersion()
const config = parseConfig(apiConfigSchema, process.env)
const logger = createLogger('api', config.LOG_LEVEL)
logger.info(BUILD, 'starting')
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('api')
const api = connectApi(config, logger, metrics, lifecycle)
const installation = api.watchInstallation()

await serve({
  routes: [...createApiRoutes(api.deps), ...createConsoleRoutes(config, logger), ...createResourceRoutes(config)],
  port: config.API_PORT,
  adminPort: config.API_ADMIN_PORT,
  settings: config,
  isReady: async () => {
    const isReady = await api.isReady()
    return isReady === true ? (installation.fault ?? true) : isReady
  },
  logger,
  metrics,
  lifecycle,
})
