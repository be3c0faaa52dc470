import { Redis } from 'ioredis'
import { pino } from 'pino'
import { QUEUES, type QueueName } from '../../../../schemas/queues/names.ts'
import { createDirectory } from '../../../../shared/directory/directory.ts'
import { Queues } from '../../../../shared/queue/queues.ts'
import { connectConsumer } from '../../../../shared/queue/redis.ts'
import { createJobAdder } from '../../../../workers/queue/sweep.ts'
import { Sweeper } from '../../../../workers/queue/sweeper.ts'
import { issueKey, startEdge } from '../../../support/services/edge.ts'
import { startPools } from '../../../support/services/pools.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase } from '../../../support/services/test-database.ts'
import { until } from '../../../support/until.ts'

const SURFACE = { workspaceId: 'ws_1', surfaceId: 'srf_1' }

/** An edge and all pools, whose queues are on the servers of a test. */
export interface Pipeline {
  /** Sends a request with a span of this name, or one that is refused by a worker. Returns the status, or 0 without an answer. */
  post(name: string | undefined): Promise<number>
  /** Sends requests with these names one after the other until `isOver`, and notes their statuses. */
  send(prefix: string, isOver: () => boolean, statuses: Map<string, number>): Promise<void>
  /** Returns the names of all spans that are stored. */
  stored(): Promise<string[]>
  /** Returns whether there are this many queues of the name, and each has accepted a request. */
  haveAccepted(name: QueueName, count: number): Promise<boolean>
  untilEmpty(): Promise<void>
  stop(): Promise<void>
}

/** Starts them, with the directory in another Redis. `directoryDb` is its database. */
export async function startPipeline(
  redisUrl: string,
  settings: Readonly<Record<string, string>>,
  directoryDb: number,
): Promise<Pipeline> {
  const services = sharedServices()
  const directoryRedisUrl = `${services.redisUrl}/${directoryDb}`
  const closers: (() => unknown)[] = []
  const stop = async () => {
    for (const close of closers.splice(0).reverse()) await close()
  }
  try {
    const directory = new Redis(directoryRedisUrl)
    closers.push(() => directory.disconnect())
    await directory.flushdb()
    const key = await issueKey(createDirectory(directory), SURFACE)
    const database = await createTestDatabase(services.clickhouseUrl, `redis_servers_${directoryDb}_${process.pid}`)
    closers.push(() => database.drop())
    const edge = await startEdge(redisUrl, {
      DIRECTORY_REDIS_URL: directoryRedisUrl,
      COMMIT_TIMEOUT_MS: '3000',
      ...settings,
    })
    closers.push(() => edge.stop())
    const durability = settings.REDIS_DURABILITY ?? 'fsync'
    const pools = startPools(QUEUES, { ...services, redisUrl, directoryRedisUrl }, database.name, {
      REDIS_DURABILITY: durability,
      JOB_LOCK_MS: '2000',
    })
    closers.push(() => pools.stop())
    const logger = pino({ level: 'silent' })
    const queues = new Queues(redisUrl, to => connectConsumer(to, logger))
    closers.push(() => queues.close())
    const sweeper = new Sweeper({ queues, addJobsOf: queue => createJobAdder(queue).add, logger }, 500)
    closers.push(() => sweeper.stop())

    const post: Pipeline['post'] = async name => {
      const headers = { 'content-type': 'application/json', 'x-service-public-key': key }
      const body = name === undefined ? '{"broken' : bodyOf(name)
      return fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body }).then(
        ({ status }) => status,
        () => 0,
      )
    }
    return {
      post,
      async send(prefix, isOver, statuses) {
        for (let i = 0; !isOver(); i++) statuses.set(`${prefix}${i}`, await post(`${prefix}${i}`))
      },
      async stored() {
        const rows = await database.rows<{ name: string }>('SELECT name FROM spans')
        return rows.map(({ name }) => name).sort()
      },
      async haveAccepted(name, count) {
        const found = (await queues.read()).of(name)
        const counts = await Promise.all(found.map(({ redis, keys }) => redis.hget(keys.flow, 'acceptedPayloads')))
        return counts.length === count && counts.every(accepted => Number(accepted) > 0)
      },
      async untilEmpty() {
        await until('every queue is empty', () => isEmpty(queues), { deadlineMs: 60_000, everyMs: 100 })
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

function bodyOf(name: string): string {
  const span = {
    traceId: '5b8efff798038103d269b633813fc60c',
    spanId: 'eee19b7ec3c1b174',
    name,
    startTimeUnixNano: '1790000000000000000',
  }
  return JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] })
}

async function isEmpty(queues: Queues): Promise<boolean> {
  const { all } = await queues.read()
  const counts = await Promise.all(all.map(({ redis, keys }) => redis.zcard(keys.pending)))
  return counts.every(count => count === 0)
}

/** Returns what a test compares: acknowledged requests that are not stored, and names that are stored more than once. */
export function faultsOf(statuses: ReadonlyMap<string, number>, stored: readonly string[]) {
  const names = new Set(stored)
  return {
    lost: [...statuses].filter(([name, status]) => status === 200 && !names.has(name)).map(([name]) => name),
    doubled: stored.filter((name, i) => stored.indexOf(name) !== i),
  }
}
