import { freePort } from '../../deploy/local/ports.ts'
import type { IngestContender } from '../measure/measure-ingest.ts'
import { startProcess } from '../services/start-process.ts'
import { QUEUES_UNBOUNDED, startEdge } from '../services/start-product.ts'
import type { BenchRedis } from '../services/start-stores.ts'
import type { ScenarioContext } from '../support/scenario.ts'

/** Name of the product's edge in reports. */
export const EDGE = 'product edge'
/** Name of uWebSockets.js alone. */
export const EMPTY_ROUTE = 'uWS, empty route'

/** Starts the servers that get the same requests, in the order of the report. */
export async function startIngestContenders(
  context: ScenarioContext,
  redis: BenchRedis,
): Promise<readonly IngestContender[]> {
  const edge = await startEdge(context, redis, QUEUES_UNBOUNDED)
  const start = async (script: string, env: Record<string, string> = {}) => {
    const port = await freePort()
    const readyUrl = `http://127.0.0.1:${port}/readyz`
    const child = await startProcess(context, { script, env: { PORT: String(port), ...env }, readyUrl })
    return { port, publicKey: edge.publicKey, pids: { edge: child.pid } }
  }
  const nothingToEmpty = async () => {}
  return [
    {
      ...edge,
      name: EDGE,
      pids: { edge: edge.pid, redis: redis.pid },
      empty: () => redis.empty(edge.queueDatabase, ['*:meta', '*:mark']),
    },
    { ...(await start('bench/peers/empty-route.ts')), name: EMPTY_ROUTE, empty: nothingToEmpty },
  ]
}
