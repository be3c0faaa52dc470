import { parseArgs } from 'node:util'
import { serve } from '../shared/http/serve.ts'
import { answerVersion, BUILD } from '../shared/runtime/build-info.ts'
import { parseConfig } from '../shared/runtime/config.ts'
import { prepareHeap } from '../shared/runtime/heap.ts'
import { createLifecycle } from '../shared/runtime/lifecycle.ts'
import { createLogger } from '../shared/runtime/logger.ts'
import { createMetrics } from '../shared/runtime/metrics.ts'
import { watchCertificates } from '../shared/runtime/redis/watch-certificates.ts'
import { grpcPortOf, ingestConfigSchema } from './config.ts'
import { connectEdge } from './connect.ts'
import { createGrpcMethods } from './routes/grpc-methods.ts'
import { createIngestRoutes } from './routes.ts'

answerVersion()

/** `--listen grpc` or `--listen http` serves one protocol alone: floods of one then take no CPU from the other. */
const { listen } = parseArgs({ options: { listen: { type: 'string' } } }).values
if (listen !== undefined && listen !== 'http' && listen !== 'grpc') throw new Error('--listen must be http or grpc')

const config = parseConfig(ingestConfigSchema, process.env)
const logger = createLogger('ingest', config.LOG_LEVEL)
logger.info(BUILD, 'starting')
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
  settings: config,
  isReady: edge.isReady,
  endWaits: edge.endWaits,
  readQueues: edge.readQueues,
  logger,
  metrics,
  lifecycle,
})
prepareHeap()
