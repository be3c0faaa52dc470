import { serve } from '../shared/http/serve.ts'
import { parseConfig } from '../shared/runtime/config.ts'
import { prepareHeap } from '../shared/runtime/heap.ts'
import { createLifecycle } from '../shared/runtime/lifecycle.ts'
import { createLogger } from '../shared/runtime/logger.ts'
import { createMetrics } from '../shared/runtime/metrics.ts'
import { ingestConfigSchema } from './config.ts'
import { connectEdge } from './connect.ts'
import { createIngestRoutes } from './routes.ts'

const config = parseConfig(ingestConfigSchema, process.env)
const logger = createLogger('ingest', config.LOG_LEVEL)
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('ingest')
const edge = connectEdge(config, logger, metrics, lifecycle)

await serve({
  routes: createIngestRoutes(edge.deps),
  port: config.INGEST_PORT,
  adminPort: config.INGEST_ADMIN_PORT,
  settings: config,
  isReady: edge.isReady,
  endWaits: edge.endWaits,
  readQueues: edge.readQueues,
  logger,
  metrics,
  lifecycle,
})
prepareHeap()
