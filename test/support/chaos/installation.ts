import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { ROOT } from '../../../deploy/local/config.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { KEEP_FREE_BYTES, startClickHouse } from '../../../deploy/local/stores/clickhouse.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import { startS3 } from '../../../deploy/local/stores/s3.ts'
import { provision } from '../../../deploy/local/workspace/provision.ts'
import { type LocalSecrets, loadSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { Queues } from '../../../shared/queue/queues.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { migrateDatabase } from '../cluster/connect.ts'
import { onOneServer } from '../queue-on.ts'
import { keepRestartable, type S3Access, SERVER_PASSWORD, type TestService } from '../services/services.ts'
import { FaultProxy } from './fault-proxy.ts'
import { type Member, startMember } from './member.ts'
import { type SentinelRedis, startReplica, startSentinelRedis } from './sentinel-redis.ts'
import { mountSmallDisk, type SmallDisk } from './small-disk.ts'

/** Name of a server. */
type ServerName = 'redis' | 'directory' | 'clickhouse' | 's3'

/** A server, the links of all processes to it, and its disk if it could be mounted. */
export interface ChaosServer {
  readonly name: ServerName
  readonly service: TestService
  readonly links: FaultProxy[]
  readonly disk: SmallDisk | undefined
}

/** A process of the product, with a link of its own to each server. */
export interface ChaosProcess {
  readonly name: string
  readonly member: Member
  /** By server, and `clients` for the link of the clients to an edge. */
  readonly links: Readonly<Record<string, FaultProxy>>
}

/** Edges and workers on real servers, in which every process and every link between two of them can fail. */
export interface Installation {
  readonly secrets: LocalSecrets
  readonly s3: S3Access
  readonly clickhouse: ClickHouseClient
  /** A connection to the primary Redis that no fault disturbs. */
  readonly redis: Redis
  /** Connections to the servers of the queues that no fault disturbs. */
  readonly queues: Queues
  /** A connection to the Redis of the directory that no fault disturbs. */
  readonly directory: Redis
  /** The pair of Redis servers, if there is a replica. */
  readonly replication: SentinelRedis | undefined
  readonly servers: Readonly<Record<ServerName, ChaosServer>>
  readonly edges: readonly ChaosProcess[]
  readonly workers: readonly ChaosProcess[]
  /** Addresses of the edges for clients. */
  readonly edgeUrls: readonly string[]
  /** Why the disks of the servers cannot be filled, if so. */
  readonly noDisks: string | undefined
  /** Starts one more process of the product in this directory, with further settings of its own. */
  startProcess(
    kind: 'edge' | 'workers',
    name: string,
    tree: string,
    settings?: Readonly<Record<string, string>>,
  ): Promise<ChaosProcess>
  /** Ends of processes that no fault has caused. */
  unexpectedEnds(): string[]
  stop(): Promise<void>
}

/** Options of `startInstallation`. */
interface InstallationOptions {
  readonly edges: number
  readonly workers: number
  /** Settings of every process. */
  readonly settings?: Readonly<Record<string, string>>
  /** Size of the disk of each server, which is mounted then. */
  readonly diskBytes?: number
  /** Whether Redis has a replica, which Sentinel promotes. */
  readonly isReplicated?: boolean
  /** Address of the queues, if they are not in the one Redis of the installation. No link to it can fail. */
  readonly queuesUrl?: string
}

/** Settings with which processes notice faults within seconds. */
const SETTINGS = {
  JOB_LOCK_MS: '2000',
  JOB_STALLED_CHECK_MS: '500',
  SWEEP_INTERVAL_MS: '1000',
  INSERT_TIMEOUT_MS: '5000',
  SHUTDOWN_DEADLINE_MS: '4000',
  LOG_LEVEL: 'error',
}

/** Starts servers and processes, with a proxy on every link. */
export async function startInstallation(options: InstallationOptions): Promise<Installation> {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-chaos-'))
  const onStop: (() => unknown)[] = [() => rm(dir, { recursive: true, force: true, maxRetries: 3 })]
  const stop = async () => {
    for (const end of onStop.splice(0).reverse()) await end()
  }
  try {
    return { ...(await start(dir, options, end => onStop.push(end))), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

type OnStop = (end: () => unknown) => void

async function start(dir: string, options: InstallationOptions, onStop: OnStop): Promise<Omit<Installation, 'stop'>> {
  const { disks, noDisks } = await mountDisks(dir, options.diskBytes, onStop)
  const access = { region: 'us-east-1', bucket: 'penstock', accessKeyId: 'test-access', secretAccessKey: 'test-secret' }
  const replication = options.isReplicated ? await startSentinelRedis(dir) : undefined
  if (replication) onStop(() => replication.stop())
  const services = await startServers(dir, access, replication, onStop)
  if (replication) onStop(await startReplica(join(dir, 'directory-2'), services.directory.url))
  const startLink = async (name: ServerName) => {
    const link = await FaultProxy.start(Number(new URL(services[name].url).port))
    onStop(() => link.close())
    if (name === 'redis') replication?.follow(link)
    return link
  }
  const secrets = await loadSecrets(dir)
  const connectTo = async (name: 'redis' | 'directory') => {
    const redis = new Redis((await startLink(name)).before(services[name].url), { maxRetriesPerRequest: null })
    redis.on('error', () => {}) // the server is killed again and again
    onStop(() => redis.disconnect())
    return redis
  }
  const [redis, directory] = [await connectTo('redis'), await connectTo('directory')]
  const queues = connectQueues(options.queuesUrl, redis, onStop)
  await provision(createDirectory(directory), secrets)
  await migrateDatabase(services.clickhouse.url, 'penstock')
  const clickhouse = createClickHouse({ url: services.clickhouse.url, database: 'penstock' })
  onStop(() => clickhouse.close())

  const serverOf = (name: ServerName): ChaosServer => ({
    name,
    get service() {
      return services[name]
    },
    links: [],
    get disk() {
      return disks[name === 'redis' ? (replication?.primary.name ?? name) : name]
    },
  })
  const servers = {
    redis: serverOf('redis'),
    directory: serverOf('directory'),
    clickhouse: serverOf('clickhouse'),
    s3: serverOf('s3'),
  }
  const env = {
    ...SETTINGS,
    NODE_COMPILE_CACHE: join(dir, 'compile-cache'),
    S3_BUCKET: access.bucket,
    AWS_ACCESS_KEY_ID: access.accessKeyId,
    AWS_SECRET_ACCESS_KEY: access.secretAccessKey,
    ...(replication && { REDIS_DURABILITY: 'replicated' }),
    ...options.settings,
  }
  const startProcess: Installation['startProcess'] = async (kind, name, tree, own) => {
    const links: Record<string, FaultProxy> = {}
    const linkTo = async (name: ServerName) => {
      const link = await startLink(name)
      links[name] = link
      servers[name].links.push(link)
      return link.before(services[name].url)
    }
    const settings = {
      ...env,
      REDIS_URL: options.queuesUrl ?? (await linkTo('redis')),
      DIRECTORY_REDIS_URL: await linkTo('directory'),
      S3_ENDPOINT: await linkTo('s3'),
      ...own,
    }
    const member =
      kind === 'edge'
        ? await startMember(join(tree, 'ingest/main.ts'), settings)
        : await startMember(join(tree, 'workers/main.ts'), {
            ...settings,
            CLICKHOUSE_URL: await linkTo('clickhouse'),
          })
    onStop(() => member.kill9())
    if (member.port !== undefined) {
      const link = await FaultProxy.start(member.port)
      onStop(() => link.close())
      links.clients = link
    }
    return { name, member, links }
  }
  const startAll = (kind: 'edge' | 'workers', count: number) =>
    Promise.all(Array.from({ length: count }, (_, i) => startProcess(kind, `${kind} ${i + 1}`, ROOT)))
  const [edges, workers] = await Promise.all([startAll('edge', options.edges), startAll('workers', options.workers)])
  return {
    secrets,
    s3: { endpoint: services.s3.url, ...access },
    clickhouse,
    redis,
    queues,
    directory,
    replication,
    servers,
    edges,
    workers,
    edgeUrls: edges.map(({ links }) => `http://127.0.0.1:${links.clients?.port}`),
    noDisks,
    startProcess,
    unexpectedEnds: () =>
      [...edges, ...workers].flatMap(({ name, member }) => member.unexpectedEnds.map(end => `${name}: ${end}`)),
  }
}

function connectQueues(url: string | undefined, redis: Redis, onStop: OnStop): Queues {
  if (url === undefined) return onOneServer(redis)
  const logger = pino({ level: 'silent' })
  const queues = new Queues(url, to => connectConsumer(to, logger))
  onStop(() => queues.close())
  return queues
}

async function mountDisks(
  dir: string,
  bytes: number | undefined,
  onStop: OnStop,
): Promise<{ disks: Readonly<Record<string, SmallDisk>>; noDisks: string | undefined }> {
  const disks: Record<string, SmallDisk> = {}
  if (bytes === undefined) return { disks, noDisks: 'none is wanted' }
  for (const name of ['redis', 'redis-2', 'directory', 'clickhouse', 's3']) {
    const disk = await mountSmallDisk(join(dir, name), bytes, name === 'clickhouse' ? KEEP_FREE_BYTES / 2 : 0)
    if (typeof disk === 'string') return { disks, noDisks: disk }
    onStop(() => disk.unmount())
    disks[name] = disk
  }
  return { disks, noDisks: undefined }
}

async function startServers(
  dir: string,
  access: Omit<S3Access, 'endpoint'>,
  replication: SentinelRedis | undefined,
  onStop: OnStop,
): Promise<Record<ServerName, TestService>> {
  const ports = {
    redis: await freePort(),
    directory: await freePort(),
    clickhouse: await freePort(),
    s3: await freePort(),
  }
  const base = (name: ServerName) => ({
    dir: join(dir, name),
    port: ports[name],
    password: SERVER_PASSWORD,
    log: (line: string) => process.env.STACK_LOG && console.log(`${name} ${line}`),
  })
  const startOne = async (start: Parameters<typeof keepRestartable>[0]) => {
    const service = await keepRestartable(start)
    onStop(() => service.kill9())
    return service
  }
  const [redis, directory, clickhouse, s3] = await Promise.all([
    replication?.primary.service ?? startOne(() => startRedis(base('redis'))),
    startOne(() => startRedis(base('directory'))),
    startOne(() => startClickHouse(base('clickhouse'))),
    startOne(() => startS3({ ...base('s3'), ...access })),
  ])
  return {
    get redis() {
      return replication?.primary.service ?? redis
    },
    directory,
    clickhouse,
    s3,
  }
}
