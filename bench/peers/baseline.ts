import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../../deploy/local/ports.ts'
import { sendRequests } from '../load/send-requests.ts'
import type { PipelineContender } from '../measure/measure-pipeline.ts'
import { startProcess } from '../services/start-process.ts'
import { issueSurface, poolsOfSignal, QUEUE_LIMITS } from '../services/start-product.ts'
import type { Stage } from '../services/start-stage.ts'

/** Name of the product at another commit in reports. */
export const BASELINE = 'product at BENCH_BASELINE'

/** Databases of the bench's Redis that no other contender uses. */
const QUEUE_DATABASE = 4
const DIRECTORY_DATABASE = 5
const DATABASE = 'baseline'
const MIGRATE_TIMEOUT_MS = 60_000

/**
 * Starts edge and worker of another checkout, with its dependencies installed, as its npm scripts do. So two commits are
 * compared in the same rounds, with the same load, Redis and ClickHouse, which no comparison of two runs can do.
 */
export async function startBaseline(stage: Stage, checkout: string): Promise<PipelineContender> {
  const dir = resolve(checkout)
  const { context, generator, redis, clickhouse } = stage
  const scripts = await readScripts(dir)
  const env = {
    REDIS_URL: redis.url(QUEUE_DATABASE),
    DIRECTORY_REDIS_URL: redis.url(DIRECTORY_DATABASE),
    // Its name up to commit c6740e18.
    CONTROL_REDIS_URL: redis.url(DIRECTORY_DATABASE),
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_DATABASE: DATABASE,
  }
  await promisify(execFile)(process.execPath, commandOf(scripts.migrate), {
    cwd: dir,
    env: { ...process.env, ...env, LOG_LEVEL: 'warn' },
    timeout: MIGRATE_TIMEOUT_MS,
  })
  const { publicKey } = await issueSurface(redis, DIRECTORY_DATABASE)
  const start = async (command: string, ports: readonly string[], args: readonly string[] = []) => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const [portName = '', adminName = ''] = ports
    const nodeArgs = commandOf(command)
    const script = nodeArgs.pop() ?? ''
    const child = await startProcess(context, {
      cwd: dir,
      nodeArgs,
      script,
      args,
      env: {
        ...env,
        ...QUEUE_LIMITS,
        [portName]: String(port),
        [adminName]: String(adminPort),
        INGEST_GRPC_PORT: String(await freePort()),
      },
      readyUrl: `http://127.0.0.1:${adminPort}/readyz`,
    })
    return { pid: child.pid, port }
  }
  const edge = await start(scripts.ingest, ['INGEST_PORT', 'INGEST_ADMIN_PORT'])
  const worker = await start(scripts.workers, ['UNUSED_PORT', 'WORKERS_ADMIN_PORT'], ['--pools', await poolsOf(dir)])
  return {
    name: BASELINE,
    pids: { edge: edge.pid, worker: worker.pid, Redis: redis.pid, ClickHouse: clickhouse.pid },
    database: DATABASE,
    table: 'spans',
    send: sendRequests(generator, {
      name: BASELINE,
      port: edge.port,
      path: '/drain/v1/traces',
      headers: { 'x-service-public-key': publicKey },
    }),
  }
}

/** The npm scripts of the processes. */
interface Scripts {
  readonly migrate: string
  readonly ingest: string
  readonly workers: string
}

async function readScripts(dir: string): Promise<Scripts> {
  return (JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as { scripts: Scripts }).scripts
}

/** Returns the arguments of a script that begins with "node". */
function commandOf(script: string): string[] {
  return script.split(' ').slice(1)
}

/** Returns the names of the pools that store spans and their exceptions. Up to commit c6740e18 they are not those of now. */
async function poolsOf(dir: string): Promise<string> {
  const names = (await import(join(dir, 'schemas/queues/names.ts'))) as {
    QUEUES?: readonly string[]
    SIGNAL_QUEUES?: { traces: string }
  }
  return (names.SIGNAL_QUEUES ? [names.SIGNAL_QUEUES.traces] : poolsOfSignal('traces', names.QUEUES)).join(',')
}
