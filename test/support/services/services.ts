import { mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../deploy/local/ports.ts'
import type { LineLog } from '../../../deploy/local/processes/child-process.ts'
import { startClickHouse } from '../../../deploy/local/stores/clickhouse.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import { startS3 } from '../../../deploy/local/stores/s3.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { GIB } from '../../../schemas/units.ts'

/** A real server that can be killed and started again on the same port with the same data. */
export interface TestService {
  readonly url: string
  readonly pid: number
  kill9(): Promise<void>
  stop(): Promise<void>
  /** Starts the server if it is not running (after kill9 or stop); resolves when it responds. */
  restart(): Promise<void>
}

/** Endpoint, bucket and credentials of an S3 server. */
export interface S3Access {
  endpoint: string
  region: string
  bucket: string
  accessKeyId: string
  secretAccessKey: string
}

/** URLs and credentials, serializable so that vitest can pass them to test files. */
export interface ServiceAddresses {
  redisUrl: string
  clickhouseUrl: string
  s3: S3Access
}

/** Returns the settings with which a process uses this object store. */
export function s3Settings({ endpoint, bucket, accessKeyId, secretAccessKey }: S3Access) {
  return {
    S3_ENDPOINT: endpoint,
    S3_BUCKET: bucket,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  }
}

/** Running servers, which a test can kill and restart. */
export interface Services extends ServiceAddresses {
  redis: TestService
  clickhouse: TestService
  s3Server: TestService
  dir: string
  /** Stops the running servers and removes the data. */
  stop(): Promise<void>
}

/** Password of every server of the tests, in their URLs. */
export const SERVER_PASSWORD = 'test-password'

/** Limits of the servers and the receiver of their output. */
export interface ServicesOptions {
  /** `maxmemory` of Redis, by default `2gb`. */
  redisMaxMemory?: string
  clickhouseMemoryBytes?: number
  /** Starts another ClickHouse than a single server. */
  startClickHouse?: () => Promise<TestService>
  /** Receives the output of the servers, by default nothing does. */
  log?: LineLog
}

/** Starts Redis, ClickHouse and S3 on free ports of this machine with their data in a new directory. */
export async function startServices(options: ServicesOptions = {}): Promise<Services> {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-test-'))
  const objectDir = await mkdtemp(join(await objectRoot(), 'penstock-test-'))
  const log = options.log ?? (() => {})
  const [redisPort, clickhousePort, s3Port] = [await freePort(), await freePort(), await freePort()]
  const access = { region: 'us-east-1', bucket: 'penstock', accessKeyId: 'test-access', secretAccessKey: 'test-secret' }

  const started = await Promise.allSettled([
    keepRestartable(() =>
      startRedis({
        dir: join(dir, 'redis'),
        port: redisPort,
        password: SERVER_PASSWORD,
        log,
        ...(options.redisMaxMemory && { maxMemory: options.redisMaxMemory }),
      }),
    ),
    options.startClickHouse?.() ??
      keepRestartable(passOn =>
        startClickHouse({
          dir: join(dir, 'clickhouse'),
          port: clickhousePort,
          password: SERVER_PASSWORD,
          log(line) {
            log(line)
            passOn(line)
          },
          ...(options.clickhouseMemoryBytes && { memoryBytes: options.clickhouseMemoryBytes }),
        }),
      ),
    keepRestartable(() => startS3({ dir: objectDir, port: s3Port, log, ...access })),
  ])
  async function stop(): Promise<void> {
    await Promise.all(started.map(result => (result.status === 'fulfilled' ? result.value.stop() : undefined)))
    for (const each of [dir, objectDir]) await rm(each, { recursive: true, force: true, maxRetries: 3 })
  }

  const [redis, clickhouse, s3Server] = started
  for (const result of started) {
    if (result.status === 'fulfilled') continue
    await stop()
    throw result.reason
  }
  if (redis.status !== 'fulfilled' || clickhouse.status !== 'fulfilled' || s3Server.status !== 'fulfilled') {
    throw new Error('unreachable: a service failed and was not reported')
  }
  return {
    redis: redis.value,
    clickhouse: clickhouse.value,
    s3Server: s3Server.value,
    redisUrl: redis.value.url,
    clickhouseUrl: clickhouse.value.url,
    s3: { endpoint: s3Server.value.url, ...access },
    dir,
    stop,
  }
}

/** Files in memory, on every Linux. */
const MEMORY_ROOT = '/dev/shm'
/** Room that the objects of all tests never fill. */
const LEAST_MEMORY_BYTES = 4 * GIB

/**
 * Returns where S3 keeps objects: in CI in memory if there is room. S3 syncs each object, and on ext4 with `discard` that
 * takes seconds while another server deletes large files.
 */
async function objectRoot(): Promise<string> {
  if (!process.env.CI) return tmpdir()
  const { bavail, bsize } = await statfs(MEMORY_ROOT)
  return bavail * bsize < LEAST_MEMORY_BYTES ? tmpdir() : MEMORY_ROOT
}

/** Last lines of a server that are printed if it ends by itself. */
const LAST_LINES = 20

/**
 * Starts a server that can be killed and started again with the same function. If it ends without that, its last lines are printed:
 * those that the function passes on.
 */
export async function keepRestartable(start: (passOn: LineLog) => Promise<LocalService>): Promise<TestService> {
  const lastLines: string[] = []
  let isEndWanted = false
  const launch = async () => {
    isEndWanted = false
    const service = await start(line => {
      lastLines.push(line)
      if (lastLines.length > LAST_LINES) lastLines.shift()
    })
    void service.exited.then(exit => {
      if (isEndWanted) return
      console.error(
        `${new URL(service.url).host} has ended by itself: ${JSON.stringify(exit)}\n${lastLines.join('\n')}`,
      )
    })
    return service
  }
  let service = await launch()
  return {
    get url() {
      return service.url
    },
    get pid() {
      return service.pid
    },
    kill9() {
      isEndWanted = true
      return service.kill9()
    },
    stop() {
      isEndWanted = true
      return service.stop()
    },
    async restart() {
      if (service.hasExited) service = await launch()
    },
  }
}
