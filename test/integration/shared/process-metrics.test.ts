import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { watchQueueAges } from '../../../shared/queue/watch/queue-ages.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { watchRedis } from '../../../shared/runtime/redis-metrics.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { startApi } from '../../support/services/api.ts'
import { issueKey, startEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/14`
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
  expect(text.match(/^penstock_queue_oldest_age_seconds\{/gm)).toHaveLength(14)
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
