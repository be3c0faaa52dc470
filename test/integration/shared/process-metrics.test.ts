import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { GIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { watchStores } from '../../../shared/queue/store-watches.ts'
import { watchQueueAges } from '../../../shared/queue/watch/queue-ages.ts'
import { watchWorkers } from '../../../shared/queue/watch/watch-workers.ts'
import { startHeartbeat } from '../../../shared/queue/watch/worker-heartbeats.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { watchCertificates } from '../../../shared/runtime/redis/watch-certificates.ts'
import { watchRedis } from '../../../shared/runtime/redis-metrics.ts'
import { createAuthority } from '../../support/proxy/certificates.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { startApi } from '../../support/services/api.ts'
import { issueKey, startEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/14`
const DAY_S = 86_400
let redis: Redis

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
})
afterAll(() => redis.disconnect())

/** Returns the value of a series by its name and one label, or undefined if there is none. */
function seriesValue(text: string, name: string, label = ''): number | undefined {
  const line = text.split('\n').find(found => found.startsWith(`${name}{`) && found.includes(label))
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ')))
}

it('the age of the oldest payload of every queue, worker-only ones included, is that of its first request', async () => {
  const metrics = createMetrics('test')
  watchQueueAges(metrics, onOneServer(redis))
  const nowMs = Number((await redis.time())[0]) * 1_000
  await redis.zadd(queueKeys('receipts').pending, nowMs - 90_000, 'older', nowMs - 5_000, 'newer')
  const text = await metrics.registry.metrics()
  await redis.del(queueKeys('receipts').pending)
  expect(seriesValue(text, 'penstock_queue_oldest_age_seconds', 'queue="receipts"')).toBeCloseTo(90, -1)
  expect(seriesValue(text, 'penstock_queue_oldest_age_seconds', 'queue="traces"')).toBe(0)
  expect(text.match(/^penstock_queue_oldest_age_seconds\{/gm)).toHaveLength(QUEUES.length)
})

it('a queue has the workers whose heartbeats name it, and none once they have stopped', async () => {
  const metrics = createMetrics('test')
  watchWorkers(metrics, onOneServer(redis))
  const shown = async (name: string, label = '') => seriesValue(await metrics.registry.metrics(), name, label)
  const workersOf = (queue: string) => shown('penstock_queue_workers', `queue="${queue}"`)
  expect([await workersOf('traces'), await shown('penstock_worker_processes')]).toEqual([0, 0])
  const beats = [startHeartbeat(redis, ['traces', 'logs']), startHeartbeat(redis, ['traces'])]
  await until('both have been seen', async () => (await workersOf('traces')) === 2)
  expect([await workersOf('logs'), await workersOf('receipts')]).toEqual([1, 0])
  expect(await shown('penstock_worker_processes')).toBe(2)
  await Promise.all(beats.map(beat => beat.stop()))
  await until('both have gone', async () => (await shown('penstock_worker_processes')) === 0)
  expect(await workersOf('traces')).toBe(0)
})

it('the clock of a process is compared with that of each Redis', async () => {
  const metrics = createMetrics('test')
  const logger = pino({ level: 'silent' })
  const now = vi.spyOn(Date, 'now').mockImplementation(() => performance.timeOrigin + performance.now() + 42_000)
  const stores = { queues: onOneServer(redis), directory: redis, reconnect: () => {} }
  const config = {
    REDIS_DURABILITY: 'unchecked',
    REDIS_MIN_REPLICAS: 1,
    REDIS_URL: 'a',
    DIRECTORY_REDIS_URL: 'b',
  } as const
  const stops: (() => unknown)[] = []
  const lifecycle = { onStop: (_: string, stop: () => unknown) => void stops.push(stop) }
  watchStores({ ...stores, logger, metrics, lifecycle }, config)
  const offsetOf = async (store: string) =>
    seriesValue(await metrics.registry.metrics(), 'penstock_clock_offset_seconds', `store="${store}"`)
  await until('both were checked', async () => (await offsetOf('queues')) && (await offsetOf('directory')))
  now.mockRestore()
  for (const stop of stops) stop()
  for (const store of ['queues', 'directory']) expect(await offsetOf(store)).toBeCloseTo(42, 0)
})

it('certificates that the addresses of Redis name are shown by the end of the first in their file', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-certificates-'))
  const authority = createAuthority(dir)
  const { certificate } = authority.issue('client', undefined, 1)
  const bundle = join(dir, 'bundle.pem')
  await writeFile(bundle, authority.pem + (await readFile(certificate, 'utf8')))
  const metrics = createMetrics('test')
  watchCertificates(metrics, {
    queues: `rediss://user@queues:6379/0?ca=${authority.file}&cert=${certificate}&key=${certificate}`,
    directory: `rediss+sentinel://a,b:26379/main?ca=${bundle}`,
    other: 'redis://other:6379',
  })
  const inSeconds = (text: string, ...labels: string[]) =>
    (seriesValue(text, 'penstock_certificate_expiry_timestamp_seconds', labels.join(',')) ?? 0) - Date.now() / 1_000
  const text = await metrics.registry.metrics()
  expect(inSeconds(text, 'store="queues"', 'file="ca"')).toBeCloseTo(2 * DAY_S, -2)
  expect(inSeconds(text, 'store="queues"', 'file="cert"')).toBeCloseTo(DAY_S, -2)
  expect(inSeconds(text, 'store="directory"', 'file="ca"')).toBeCloseTo(DAY_S, -2)
  expect(text.match(/^penstock_certificate_expiry_timestamp_seconds\{/gm)).toHaveLength(3)

  await writeFile(bundle, authority.pem)
  await rm(certificate)
  const later = await metrics.registry.metrics()
  expect(inSeconds(later, 'store="directory"', 'file="ca"')).toBeCloseTo(2 * DAY_S, -2)
  expect(later.match(/^penstock_certificate_expiry_timestamp_seconds\{/gm)).toHaveLength(2)
  await rm(dir, { recursive: true })
})

it('a Redis that hangs is reported as down, without its old values', async () => {
  const report = () => {
    const metrics = createMetrics('test')
    watchRedis(metrics, { queues: redis })
    watchQueueAges(metrics, onOneServer(redis))
    return metrics.registry.metrics()
  }
  const before = await report()
  expect(seriesValue(before, 'penstock_redis_up', 'store="queues"')).toBe(1)
  expect(seriesValue(before, 'penstock_redis_aof_enabled')).toBe(1)
  expect(seriesValue(before, 'penstock_redis_aof_write_ok')).toBe(1)
  expect(seriesValue(before, 'penstock_redis_memory_limit_bytes')).toBe(2 * GIB)
  const forkedUs = Number(/^latest_fork_usec:(\d+)/m.exec(await redis.info('stats'))?.[1])
  expect(seriesValue(before, 'penstock_redis_fork_seconds')).toBeCloseTo(forkedUs / 1_000_000, 6)

  await redis.call('CLIENT', 'PAUSE', '1800', 'ALL')
  const hanging = await report()
  expect(seriesValue(hanging, 'penstock_redis_up')).toBe(0)
  expect(seriesValue(hanging, 'penstock_redis_memory_bytes')).toBeUndefined()
  expect(seriesValue(hanging, 'penstock_queue_oldest_age_seconds')).toBeUndefined()
  await redis.ping()
})

it('the edge counts refusals by the limits of keys, and lookups of keys by whether they were cached', async () => {
  const edge = await startEdge(redisUrl)
  const key = await issueKey(createDirectory(redis), { quotas: { bytesPerSecond: 10 } })
  const send = async () => {
    const headers = { 'x-service-public-key': key, 'content-type': 'application/json' }
    return (await fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body: '{"resourceSpans":[]}' }))
      .status
  }
  expect([await send(), await send()]).toEqual([200, 429])
  const text = await edge.metrics()
  await edge.stop()
  expect(seriesValue(text, 'penstock_key_refusals_total', 'limit="bytesPerSecond"')).toBe(1)
  expect(seriesValue(text, 'penstock_cache_lookups_total', 'cache="public_keys",outcome="hit"')).toBe(1)
  expect(seriesValue(text, 'penstock_cache_lookups_total', 'cache="public_keys",outcome="miss"')).toBe(1)
  expect(seriesValue(text, 'penstock_redis_up', 'store="directory"')).toBe(1)
})

it('the API reports parts, merges, disks and memory of ClickHouse, and that it is down', async () => {
  const database = await createTestDatabase(services.clickhouseUrl, 'process_metrics')
  await database.rows('SELECT 1')
  const api = await startApi({ ...services, redisUrl }, database.name)
  const text = await api.metrics()
  await api.stop()
  await database.drop()
  expect(seriesValue(text, 'penstock_clickhouse_up')).toBe(1)
  expect(seriesValue(text, 'penstock_clickhouse_merges')).toBeGreaterThanOrEqual(0)
  expect(seriesValue(text, 'penstock_clickhouse_mutations')).toBe(0)
  expect(seriesValue(text, 'penstock_clickhouse_disk_bytes', 'disk="default"')).toBeGreaterThan(1e9)
  expect(seriesValue(text, 'penstock_clickhouse_disk_free_bytes', 'disk="default"')).toBeGreaterThan(0)
  expect(seriesValue(text, 'penstock_clickhouse_memory_bytes')).toBeGreaterThan(0)
})
