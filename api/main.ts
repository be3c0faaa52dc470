import { serve } from '../shared/http/serve.ts'
import { createLifecycle } from '../shared/runtime/lifecycle.ts'
import { createMetrics } from '../shared/runtime/metrics.ts'
import { openProcess } from '../shared/runtime/process/open-process.ts'
import { watchCertificates } from '../shared/runtime/redis/watch-certificates.ts'
import { createResourceRoutes } from './auth/protected-resource.ts'
import { apiConfigSchema } from './config.ts'
import { connectApi } from './connect.ts'
import { createConsoleRoutes } from './console/console-routes.ts'
import { createRunbookRoute } from './console/runbook-route.ts'
import { createActRoutes } from './findings/act/act-routes.ts'
import { createApiRoutes } from './routes.ts'

const { config, logger } = openProcess({
  name: 'api',
  schema: apiConfigSchema,
  env: process.env,
  usage: 'api [--version] [--help]',
})
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('api')
watchCertificates(metrics, { queues: config.REDIS_URL, directory: config.DIRECTORY_REDIS_URL })
const api = connectApi(config, logger, metrics, lifecycle)
api.watchInstallation()

await serve({
  routes: [
    ...createApiRoutes(api.deps),
    ...createConsoleRoutes(config, logger),
    createRunbookRoute(),
    ...createActRoutes(api.deps),
    ...createResourceRoutes(config),
  ],
  port: config.API_PORT,
  adminPort: config.API_ADMIN_PORT,
  settingsPrefix: 'API',
  settings: config,
  isReady: api.isReady,
  logger,
  metrics,
  lifecycle,
})
