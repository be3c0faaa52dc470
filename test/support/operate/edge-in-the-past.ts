import { ingestConfigSchema } from '../../../ingest/config.ts'
import { connectEdge } from '../../../ingest/connect.ts'
import { createIngestRoutes } from '../../../ingest/routes.ts'
import { serve } from '../../../shared/http/serve.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { createLifecycle } from '../../../shared/runtime/lifecycle.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'

/** The process of an edge whose requests arrive `ARRIVED_AGO_MS` before now, because an audit judges hours that have passed. */
const config = parseConfig(ingestConfigSchema, process.env)
const logger = createLogger('ingest', config.LOG_LEVEL)
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('ingest')
const edge = connectEdge(config, logger, metrics, lifecycle, () => Date.now() - Number(process.env.ARRIVED_AGO_MS))

await serve({
  routes: createIngestRoutes(edge.deps),
  port: config.INGEST_PORT,
  adminPort: config.INGEST_ADMIN_PORT,
  settings: config,
  settingsPrefix: 'INGEST',
  isReady: edge.isReady,
  endWaits: edge.endWaits,
  readQueues: edge.readQueues,
  logger,
  metrics,
  lifecycle,
})
