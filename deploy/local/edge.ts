import { createResourceRoutes } from '../../api/auth/protected-resource.ts'
import { apiConfigSchema } from '../../api/config.ts'
import { connectApi } from '../../api/connect.ts'
import { createConsoleRoutes } from '../../api/console/console-routes.ts'
import { createRunbookRoute } from '../../api/console/runbook-route.ts'
import { createActRoutes } from '../../api/findings/act/act-routes.ts'
import { createApiRoutes } from '../../api/routes.ts'
import { grpcPortOf, ingestConfigSchema } from '../../ingest/config.ts'
import { connectEdge } from '../../ingest/connect.ts'
import { createGrpcMethods } from '../../ingest/routes/grpc-methods.ts'
import { createIngestRoutes } from '../../ingest/routes.ts'
import { serve } from '../../shared/http/serve.ts'
import { parseConfig } from '../../shared/runtime/config.ts'
import { createLifecycle } from '../../shared/runtime/lifecycle.ts'
import { createMetrics } from '../../shared/runtime/metrics.ts'
import { openProcess } from '../../shared/runtime/process/open-process.ts'
import { watchCertificates } from '../../shared/runtime/redis/watch-certificates.ts'
import { parseLocalConfig } from './config.ts'
import { createIssuerRoutes } from './issuer/issuer-routes.ts'
import { ISSUER_PATH } from './issuer/pages.ts'
import { addressesOf } from './processes/processes.ts'
import { loadSecrets } from './workspace/secrets.ts'

/**
 * Serves every operation at one base address (deploy/local/README.md): the routes of the edge and of the API on one
 * server, the console, and the issuer that signs its user in. In production an ingress does this by path. The server is
 * ready when the edge is ready, because ClickHouse is not on the accept path here either.
 */
const { config, logger } = openProcess({
  name: 'edge',
  schema: ingestConfigSchema,
  env: process.env,
  usage: 'node deploy/local/edge.ts',
})
const apiConfig = parseConfig(apiConfigSchema, process.env)
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('edge')
watchCertificates(metrics, { queues: config.REDIS_URL, directory: config.DIRECTORY_REDIS_URL })
const api = connectApi(apiConfig, logger, metrics, lifecycle)
const edge = connectEdge(config, logger, metrics, lifecycle)

await serve({
  routes: [
    ...createIngestRoutes(edge.deps),
    ...createApiRoutes(api.deps),
    ...createConsoleRoutes(apiConfig, logger),
    createRunbookRoute(),
    ...createActRoutes(api.deps),
    ...createResourceRoutes(apiConfig),
    ...(await localIssuerRoutes()),
  ],
  port: config.INGEST_PORT,
  grpc: { methods: createGrpcMethods(edge.deps, edge.isReady), port: grpcPortOf(config) },
  adminPort: config.INGEST_ADMIN_PORT,
  settingsPrefix: 'INGEST',
  settings: config,
  isReady: edge.isReady,
  endWaits: edge.endWaits,
  readQueues: edge.readQueues,
  logger,
  metrics,
  lifecycle,
})

/** Returns the routes of the local issuer, unless the console uses another one. */
async function localIssuerRoutes() {
  const local = parseLocalConfig(process.env)
  const { baseUrl, apiUrl } = addressesOf(local)
  if (apiConfig.CONSOLE_ISSUER !== baseUrl + ISSUER_PATH) return []
  return createIssuerRoutes({
    identity: await loadSecrets(local.LOCAL_DIR),
    directory: local.LOCAL_DIR,
    baseUrl,
    consoleOrigins: [baseUrl, apiUrl],
    now: Date.now,
  })
}
