import { join } from 'node:path'
import { hasDirectoryRedis, type LocalConfig } from '../config.ts'
import type { ChildProcess, LineLog } from '../processes/child-process.ts'
import type { Unit } from '../processes/supervisor.ts'
import type { LocalSecrets } from '../workspace/secrets.ts'
import { clickhouseUrl, startClickHouse } from './clickhouse.ts'
import { redisUrl, startRedis } from './redis.ts'
import { startS3 } from './s3.ts'

/** Addresses and credentials of the stores. */
export interface ServiceAccess {
  redisUrl: string
  /** Redis of the directory and the releases. */
  directoryRedisUrl: string
  /** The URL of a local server has user and password, which then count instead of the others. */
  clickhouse: { url: string; user: string; password: string; database: string }
  s3: { endpoint: string; region: string; bucket: string; accessKeyId: string; secretAccessKey: string }
}

/** The stores: how to reach them, and the units that this start has to run. */
interface LocalServices {
  access: ServiceAccess
  redis: Unit | undefined
  directory: Unit | undefined
  clickhouse: Unit | undefined
  s3: Unit | undefined
}

type Start = (log: LineLog, signal: AbortSignal) => Promise<ChildProcess>

const STAGE = { stopStage: 3, stopDeadlineMs: 1_000 }
const SHOWN_LINES = 20

/**
 * Returns the servers to start, and the access to them or to the external servers that the environment names. The Redis of
 * the directory listens on `directoryPort`.
 */
export function localServices(
  config: LocalConfig,
  secrets: LocalSecrets,
  directoryPort: number,
  log: (name: string, line: string) => void,
): LocalServices {
  const directory = (name: string) => join(config.LOCAL_DIR, name)
  const isVerbose = config.LOG_LEVEL === 'debug' || config.LOG_LEVEL === 'trace'

  const service = (name: string, start: Start): Unit => ({
    name,
    ...STAGE,
    start: signal =>
      showingLastLines(
        line => log(name, line),
        isVerbose,
        lines => start(lines, signal),
      ),
  })
  const s3 = s3Access(config, secrets)
  const queues = { port: config.REDIS_PORT, password: secrets.redisPassword }
  const directoryRedis = { port: directoryPort, password: secrets.directoryRedisPassword }
  const clickhouse = { port: config.CLICKHOUSE_PORT, password: secrets.clickhousePassword }
  return {
    access: { ...accessOf(config, { queues, directory: directoryRedis, clickhouse }), s3 },
    redis: config.REDIS_URL
      ? undefined
      : service('redis', (log, signal) =>
          startRedis({ ...queues, dir: directory('redis'), maxMemory: config.REDIS_MAX_MEMORY, log, signal }),
        ),
    directory: hasDirectoryRedis(config)
      ? service('directory', (log, signal) =>
          startRedis({
            ...directoryRedis,
            dir: directory('directory'),
            maxMemory: config.DIRECTORY_REDIS_MAX_MEMORY,
            log,
            signal,
          }),
        )
      : undefined,
    clickhouse: config.CLICKHOUSE_URL
      ? undefined
      : service('clickhouse', (log, signal) =>
          startClickHouse({
            ...clickhouse,
            dir: directory('clickhouse'),
            memoryBytes: config.CLICKHOUSE_MEMORY_BYTES,
            log,
            signal,
          }),
        ),
    s3: config.S3_ENDPOINT
      ? undefined
      : service('s3', (log, signal) => startS3({ dir: directory('s3'), port: config.S3_PORT, log, signal, ...s3 })),
  }
}

interface LocalServers {
  readonly queues: LocalServer
  readonly directory: LocalServer
  readonly clickhouse: LocalServer
}

interface LocalServer {
  readonly port: number
  readonly password: string
}

function accessOf(config: LocalConfig, servers: LocalServers): Omit<ServiceAccess, 's3'> {
  const queuesUrl = config.REDIS_URL ?? redisUrl(servers.queues)
  const otherDirectoryUrl = config.DIRECTORY_REDIS_URL ?? queuesUrl
  return {
    redisUrl: queuesUrl,
    directoryRedisUrl: hasDirectoryRedis(config) ? redisUrl(servers.directory) : otherDirectoryUrl,
    clickhouse: {
      database: config.CLICKHOUSE_DATABASE,
      url: config.CLICKHOUSE_URL ?? clickhouseUrl(servers.clickhouse),
      user: config.CLICKHOUSE_USER,
      password: config.CLICKHOUSE_PASSWORD,
    },
  }
}

function s3Access(config: LocalConfig, secrets: LocalSecrets): ServiceAccess['s3'] {
  const { S3_REGION: region, S3_BUCKET: bucket } = config
  if (config.S3_ENDPOINT) {
    const accessKeyId = config.AWS_ACCESS_KEY_ID ?? ''
    const secretAccessKey = config.AWS_SECRET_ACCESS_KEY ?? ''
    return { region, bucket, endpoint: config.S3_ENDPOINT, accessKeyId, secretAccessKey }
  }
  return {
    region,
    bucket,
    endpoint: `http://127.0.0.1:${config.S3_PORT}/cdn-cgi/local/r2/s3`,
    accessKeyId: secrets.s3AccessKeyId,
    secretAccessKey: secrets.s3SecretAccessKey,
  }
}

/** Hides the output of a server, and shows its last lines if it fails. */
async function showingLastLines(
  show: LineLog,
  isVerbose: boolean,
  start: (log: LineLog) => Promise<ChildProcess>,
): Promise<ChildProcess> {
  if (isVerbose) return start(show)
  const last: string[] = []
  const showLast = () => last.splice(0).forEach(show)
  try {
    const child = await start(line => {
      last.push(line)
      if (last.length > SHOWN_LINES) last.shift()
    })
    void child.exited.then(({ code, signal }) => {
      if (code !== 0 && signal !== 'SIGKILL') showLast()
    })
    return child
  } catch (error) {
    showLast()
    throw error
  }
}
