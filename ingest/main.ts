import { serve } from '../shared/http/serve.ts'
import { prepareHeap } from '../shared/runtime/heap.ts'
import { createLifecycle } from '../shared/runtime/lifecycle.ts'
import { createMetrics } from '../shared/runtime/metrics.ts'
import { openProcess } from '../shared/runtime/process/open-process.ts'
import { watchCertificates } from '../shared/runtime/redis/watch-certificates.ts'
import { grpcPortOf, ingestConfigSchema } from './config.ts'
import { connectEdge } from './connect.ts'
import { createGrpcMethods } from './routes/grpc-methods.ts'
import { createIngestRoutes } from './routes.ts'

const { config, values, logger } = openProcess({
  name: 'ingest',
  schema: ingestConfigSchema,
  env: process.env,
  usage: 'ingest [--listen http|grpc] [--version] [--help]',
  // One protocol alone: floods of one then take no CPU from the other.
  options: { listen: { type: 'string' } },
  faultOf: ({ listen = 'http' }) => (['http', 'grpc'].includes(listen) ? undefined : '--listen must be http or grpc'),
})
const { listen } = values
const lifecycle = createLifecycle(logger, config.SHUTDOWN_DEADLINE_MS)
const metrics = createMetrics('ingest')
watchCertificates(metrics, { queues: config.REDIS_URL, directory: config.DIRECTORY_REDIS_URL })
const edge = connectEdge(config, logger, metrics, lifecycle)

await serve({
  routes: createIngestRoutes(edge.deps),
  port: listen === 'grpc' ? undefined : config.INGEST_PORT,
  grpc:
    listen === 'http' ? undefined : { methods: createGrpcMethods(edge.deps, edge.isReady), port: grpcPortOf(config) },
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
prepareHeap()
