import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { DurabilityWatch } from '../../../shared/queue/durability-watch.ts'
import { connectProducer } from '../../../shared/queue/redis.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { createLifecycle } from '../../../shared/runtime/lifecycle.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { workersConfigSchema } from '../../../workers/config.ts'
import { connectWorkers } from '../../../workers/connect.ts'
import { createWorkerMetrics } from '../../../workers/metrics.ts'
import { type Relay, startRelay } from '../../support/redis-pair.ts'
import { issueKey, openEdge, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { until } from '../../support/until.ts'

let dir: string
let queues: LocalService
let directory: LocalService
let redis: Redis
let edge: TestEdge
let publicKey: string
let secretKey: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-durability-'))
  const start = async (name: string) =>
    startRedis({ dir: join(dir, name), port: await freePort(), password: 'test', log: () => {} })
  queues = await start('queues')
  directory = await start('directory')
  redis = new Redis(queues.url)
  const directoryRedis = new Redis(directory.url)
  publicKey = await issueKey(createDirectory(directoryRedis))
  secretKey = await issueKey(createDirectory(directoryRedis), { kind: 'secret', scopes: ['release:write'] })
  directoryRedis.disconnect()
  edge = await startEdge(queues.url, { DIRECTORY_REDIS_URL: directory.url })
})

afterAll(async () => {
  await edge?.stop()
  redis?.disconnect()
  await Promise.all([queues?.kill9(), directory?.kill9()])
  await rm(dir, { recursive: true, force: true })
})

async function post(path: string, body: string, headers: Record<string, string>) {
  const response = await fetch(edge.baseUrl + path, { method: 'POST', headers, body })
  const retryAfter = Number(response.headers.get('retry-after'))
  return { status: response.status, retryAfter, text: await response.text() }
}

const exportTraces = () =>
  post('/drain/v1/traces', '', { 'content-type': 'application/x-protobuf', 'x-service-public-key': publicKey })
const registerRelease = () =>
  post('/v3/releases', JSON.stringify({ version: '1.0' }), {
    'content-type': 'application/json',
    authorization: `Bearer ${secretKey}`,
  })

/** Has processes connect again, when they read the settings. Otherwise they do so every minute. */
const endConnections = (server: Redis) => server.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')

/** Workers that are connected to this Redis and run no pool. */
function openWorkers(redisUrl: string, settings: Record<string, string> = {}) {
  const logger = pino({ level: 'silent' })
  const lifecycle = createLifecycle(logger, 1_000)
  const env = {
    REDIS_URL: redisUrl,
    DIRECTORY_REDIS_URL: directory.url,
    S3_ENDPOINT: 'http://127.0.0.1:1',
    ...settings,
  }
  const processMetrics = createMetrics('test')
  const wiring = { queues: [], logger, lifecycle, metrics: createWorkerMetrics(processMetrics), processMetrics }
  const { isReady } = connectWorkers(parseConfig(workersConfigSchema, env), wiring, new AbortController().signal)
  return { isReady, stop: () => lifecycle.stop('test') }
}

it.each([
  ['appendfsync', 'everysec', 'always', /appendfsync is everysec/],
  ['appendonly', 'no', 'yes', /appendonly is no/],
  ['no-appendfsync-on-rewrite', 'yes', 'no', /no-appendfsync-on-rewrite is yes/],
  ['maxmemory', '0', '2gb', /maxmemory is 0/],
  ['maxmemory-policy', 'volatile-lru', 'noeviction', /maxmemory-policy is volatile-lru/],
])(
  'nothing is acknowledged while %s of the queues is %s, and all is again once it is %s',
  async (name, bad, good, reason) => {
    await until('exports are accepted', async () => (await exportTraces()).status === 200)
    const workers = openWorkers(queues.url)
    await until('the workers are ready', () => workers.isReady() === true)
    await redis.config('SET', name, bad)
    await endConnections(redis)
    try {
      const reasonOf = (isReady: () => true | string) => reason.test(String(isReady()))
      await until('the edge is not ready and names the reason', () => reasonOf(edge.isReady))
      await until('the workers are not ready and name the reason', () => reasonOf(workers.isReady))
      const answer = await exportTraces()
      expect(answer).toMatchObject({ status: 503, retryAfter: 5 })
      expect(JSON.parse(answer.text)).toMatchObject({
        code: 'INGEST_INFRA_UNAVAILABLE',
        message: expect.stringContaining('the server or its store is not ready'),
      })
      expect(await edge.metrics()).toMatch(/penstock_redis_durable\{[^}]*store="queues"[^}]*\} 0/)
    } finally {
      await redis.config('SET', name, good)
      await workers.stop()
    }
    await until('the edge is ready again', () => edge.isReady() === true)
    expect((await exportTraces()).status).toBe(200)
    expect(await edge.metrics()).toMatch(/penstock_redis_durable\{[^}]*store="queues"[^}]*\} 1/)
  },
)

it('no release is registered while the Redis of the directory could lose it', async () => {
  const server = new Redis(directory.url)
  await server.config('SET', 'appendfsync', 'everysec')
  await endConnections(server)
  try {
    await until('the edge names the store', () => /redis of the directory: appendfsync/.test(String(edge.isReady())))
    expect(await registerRelease()).toMatchObject({ status: 503, retryAfter: 5 })
  } finally {
    await server.config('SET', 'appendfsync', 'always')
    server.disconnect()
  }
  await until('the edge is ready again', () => edge.isReady() === true)
  expect((await registerRelease()).status).toBe(200)
})

it('a Redis that forbids CONFIG is accepted only unchecked', async () => {
  await redis.call('ACL', 'SETUSER', 'managed', 'on', '>test', '~*', '&*', '+@all', '-config')
  const url = queues.url.replace('default:', 'managed:')
  const checked = await openEdge(url, { DIRECTORY_REDIS_URL: directory.url })
  const workers = openWorkers(url)
  const unchecked = await startEdge(url, { DIRECTORY_REDIS_URL: directory.url, REDIS_DURABILITY: 'unchecked' })
  try {
    const namesSetting = (isReady: () => true | string) => /REDIS_DURABILITY=unchecked/.test(String(isReady()))
    await until('the reason names the setting', () => namesSetting(checked.isReady) && namesSetting(workers.isReady))
    expect(unchecked.isReady()).toBe(true)
  } finally {
    await Promise.all([checked.stop(), workers.stop(), unchecked.stop()])
  }
})

it('an edge that must wait for replicas acknowledges nothing while there are none', async () => {
  const alone = await openEdge(queues.url, { DIRECTORY_REDIS_URL: directory.url, REDIS_DURABILITY: 'replicated' })
  try {
    await until('the reason counts replicas', () => /0 replicas are in step/.test(String(alone.isReady())))
    const response = await fetch(`${alone.baseUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': publicKey },
    })
    expect(response.status).toBe(503)
  } finally {
    await alone.stop()
  }
})

it.each([
  ['ahead of', 90_000],
  ['behind', -90_000],
])('a clock that is 90 s %s that of the queues is a reason to acknowledge nothing', async (side, differenceMs) => {
  const logger = pino({ level: 'silent' })
  const now = () => Date.now() + differenceMs
  const promise = { REDIS_DURABILITY: 'unchecked', REDIS_MIN_REPLICAS: 1 } as const
  const watch = new DurabilityWatch({ redis, store: 'queues', logger, reconnect: () => {}, now }, promise)
  await until('the reason names the clock', () => watch.fault?.includes(`s ${side} its clock`))
  expect(watch.refuse()).toMatchObject({ code: 'INGEST_INFRA_UNAVAILABLE' })
  watch.stop()
})

it('a restart of the server is no other server, and no connection is replaced twice', async () => {
  const options = { dir: join(dir, 'restarted'), port: await freePort(), password: 'test', log: () => {} }
  const gone = await freePort()
  let server = await startRedis(options)
  const relay = await startRelay(options.port)
  const ofOther = new URL(server.url)
  ofOther.port = String(relay.port)
  const logged: string[] = []
  const logger = pino({ level: 'error' }, { write: line => void logged.push(line) })
  const [redis, other] = [server.url, ofOther.href].map(url => connectProducer(url, 2_000, logger)) as [Redis, Redis]
  let opened = 0
  let replaced = 0
  other.on('ready', () => opened++)
  const promise = { REDIS_DURABILITY: 'fsync', REDIS_MIN_REPLICAS: 1 } as const
  const watch = new DurabilityWatch({ redis, store: 'queues', logger, reconnect: () => replaced++ }, promise)
  watch.follow(other)
  try {
    await until('both are connected', () => watch.fault === undefined && other.status === 'ready')
    await other.ping()
    // The connection of the watch is back before the other one.
    relay.leadTo(gone)
    await server.kill9()
    await until('the watch has noticed', () => watch.fault !== undefined)
    server = await startRedis(options)
    await until('the new server was checked', () => watch.fault === undefined || logged.length > 0)
    relay.leadTo(options.port)
    await until('both are connected again', () => watch.fault === undefined && other.status === 'ready')
    await other.ping()
    expect(watch.fault).toBeUndefined()
    expect({ logged, opened, replaced }).toEqual({ logged: [], opened: 2, replaced: 0 })
  } finally {
    watch.stop()
    for (const one of [redis, other]) one.disconnect()
    await relay.close()
    await server.kill9()
  }
})

describe('a server that answers no more', () => {
  let unsafe: LocalService
  let relay: Relay
  const connected: Redis[] = []

  beforeAll(async () => {
    unsafe = await startRedis({ dir: join(dir, 'unsafe'), port: await freePort(), password: 'test', log: () => {} })
    const server = new Redis(unsafe.url)
    await server.config('SET', 'appendfsync', 'everysec')
    server.disconnect()
  })

  beforeEach(async () => {
    relay = await startRelay(Number(new URL(queues.url).port))
  })

  afterEach(async () => {
    process.kill(queues.pid, 'SIGCONT')
    for (const one of connected.splice(0)) one.disconnect()
    await relay.close()
  })

  afterAll(() => unsafe?.kill9())

  const relayUrl = () => {
    const url = new URL(queues.url)
    url.port = String(relay.port)
    return url.href
  }
  /** Has new connections lead to the server that could lose what it confirms, while the other one stays open and silent. */
  const freeze = () => {
    process.kill(queues.pid, 'SIGSTOP')
    relay.leadTo(Number(new URL(unsafe.url).port))
  }

  it('nothing is acknowledged by the server that has its address, while that could lose it', async () => {
    const moved = await startEdge(relayUrl(), { DIRECTORY_REDIS_URL: directory.url })
    const send = async () => {
      const headers = { 'content-type': 'application/json', 'x-service-public-key': publicKey }
      const response = await fetch(`${moved.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body: '{}' })
      await response.arrayBuffer()
      return response.status
    }
    try {
      expect(await send()).toBe(200)
      freeze()
      const sent: Promise<number>[] = []
      await until('the edge names the setting of the other server', () => {
        sent.push(send())
        return /appendfsync is everysec/.test(String(moved.isReady()))
      })
      expect([...new Set(await Promise.all(sent))]).toEqual([503])
    } finally {
      process.kill(queues.pid, 'SIGCONT')
      await moved.stop()
    }
  })

  const openWatch = () => {
    const logger = pino({ level: 'silent' })
    const [redis, other] = [connectProducer(relayUrl(), 300, logger), connectProducer(relayUrl(), 300, logger)]
    const reconnect = () => void [redis, other].map(one => one.disconnect(true))
    const promise = { REDIS_DURABILITY: 'fsync', REDIS_MIN_REPLICAS: 1 } as const
    const watch = new DurabilityWatch({ redis, store: 'queues', logger, reconnect }, promise)
    watch.follow(other)
    const close = () => {
      watch.stop()
      for (const one of [redis, other]) one.disconnect()
    }
    return { watch, other, close }
  }

  it('is not relied on once a check has no answer, and is again once one has', async () => {
    const { watch, close } = openWatch()
    await until('the server is found safe', () => watch.fault === undefined)
    relay.hold()
    await until('a check had no answer', () => {
      watch.recheck()
      return watch.fault?.includes('not durable: it does not answer')
    })
    expect(watch.refuse()).toMatchObject({ code: 'INGEST_INFRA_UNAVAILABLE' })
    relay.resume()
    await until('the server is found safe again', () => watch.fault === undefined)
    expect(watch.refuse()).toBeUndefined()
    close()
  })

  it('is left, though no write has failed', async () => {
    const { watch, close } = openWatch()
    await until('the server is found safe', () => watch.fault === undefined)
    freeze()
    await until('the other server is checked', () => {
      watch.recheck()
      return watch.fault?.includes('appendfsync is everysec')
    })
    close()
  })

  const connectTo = (url: string) => {
    const connection = connectProducer(url, 300, pino({ level: 'silent' }))
    connected.push(connection)
    return connection
  }
  const watchOf = (redis: Redis) => {
    const promise = { REDIS_DURABILITY: 'unchecked', REDIS_MIN_REPLICAS: 1 } as const
    const logger = pino({ level: 'silent' })
    return new DurabilityWatch({ redis, store: 'queues', logger, reconnect: () => {} }, promise)
  }

  it('is another one than that of the watch while any connection leads elsewhere, whichever opened last', async () => {
    relay.leadTo(await freePort())
    const watch = watchOf(connectTo(relayUrl()))
    for (const url of [unsafe.url, queues.url]) {
      const followed = connectTo(url)
      watch.follow(followed)
      await until('the connection is open', () => followed.status === 'ready')
      await followed.ping()
    }
    relay.leadTo(Number(new URL(queues.url).port))
    const fault = await until('the server was checked', () =>
      watch.fault?.includes('not known yet') ? undefined : (watch.fault ?? 'none'),
    )
    watch.stop()
    expect(fault).toMatch(/leads to another server/)
  })

  it('is not taken for the one of the watch: the connection that does not know it is replaced', async () => {
    relay.leadTo(Number(new URL(unsafe.url).port))
    const watch = watchOf(connectTo(queues.url))
    const other = connectTo(relayUrl())
    // Before `follow`, so that the server answers nothing from the moment at which the connection is open.
    other.once('ready', () => relay.hold())
    watch.follow(other)
    await until('the connection is open', () => other.status === 'ready')
    await until('the connection is left', () => other.status !== 'ready')
    relay.resume()
    await until('the other server is noticed', () => watch.fault?.includes('leads to another server'))
    watch.stop()
  })

  it('is left when a new connection leads to another one, though it answers', async () => {
    const { watch, other, close } = openWatch()
    await until('the server is found safe', () => watch.fault === undefined && other.status === 'ready')
    relay.leadTo(Number(new URL(unsafe.url).port))
    other.disconnect(true)
    await until('the other server is checked', () => watch.fault?.includes('appendfsync is everysec'))
    close()
  })
})
