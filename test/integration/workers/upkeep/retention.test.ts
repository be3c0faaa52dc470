import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDeliveryQueue } from '../../../../alerts/calling/delivery-queue.ts'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { RETAINED_TABLES } from '../../../../clickhouse/queries/retention/retained-tables.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { createDirectory } from '../../../../shared/directory/directory.ts'
import { upkeepKeys } from '../../../../shared/directory/record.ts'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { manifestKey } from '../../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import { hasUploads, removeUploads } from '../../../../shared/queue/remove-uploads.ts'
import { createMetrics } from '../../../../shared/runtime/metrics.ts'
import { expireReleases } from '../../../../workers/upkeep/expire-releases.ts'
import { startUpkeep } from '../../../../workers/upkeep/start-upkeep.ts'
import { createUpkeepMetrics } from '../../../../workers/upkeep/upkeep-metrics.ts'
import { listObjects } from '../../../support/oracles/list-objects.ts'
import { onOneServer } from '../../../support/queue-on.ts'
import { createDatabase, insertExceptions, insertSpans, putWorkspace } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { until } from '../../../support/until.ts'
import { at, insertRows, ownerColumns, storeChunk } from '../../../support/workspaces/session-rows.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/7`
const DATABASE = `upkeep_retention_${process.pid}`
const RUN = randomBytes(5).toString('hex')
const SHORT = { id: `ws_${RUN}1`, slug: `short-${RUN}` }
const OTHER = { id: `ws_${RUN}2`, slug: `other-${RUN}` }
/** Days since which the rows of the test have arrived. */
const AGES = [0, 3, 11]

let client: ClickHouseClient
let redis: Redis
const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
  client = await createDatabase(services.clickhouseUrl, DATABASE)
  for (const workspace of [SHORT, OTHER]) {
    await putWorkspace(redisUrl, workspace)
    for (const age of AGES) await fill(workspace.id, age)
  }
})
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
  objects.close()
  redis?.disconnect()
})

/** Stores a row of each kind that arrived some days ago, with the objects that they name. */
async function fill(workspaceId: string, age: number): Promise<void> {
  const receivedAt = Date.now() - age * DAY_MS
  const sessionId = `s${age}`
  const owner = { workspaceId, surfaceId: 'srf_1', sessionId }
  const columns = { ...ownerColumns(owner), received_at: at(receivedAt) }
  const { session_id: _, ...surface } = columns
  const traceId = 'a'.repeat(31) + age.toString(16)
  await insertSpans(client, [{ workspaceId, sessionId, traceId, spanId: '00000000000000a1', receivedAt }])
  await insertExceptions(client, [{ workspaceId, findingId: `fnd_${'a'.repeat(26)}`, traceId, sessionId, receivedAt }])
  await insertRows(client, 'failures', [columns])
  await insertRows(client, 'exception_twins', [{ ...columns, change: 0 }])
  const minute = Math.floor(receivedAt / 60_000) * 60
  await insertRows(client, 'span_stats', [{ ...surface, minute, spans: 1 }])
  await insertRows(client, 'service_edges', [{ ...surface, minute, calls: 1 }])
  await insertRows(client, 'logs', [{ ...columns, timestamp: at(receivedAt), body: 'x' }])
  await insertRows(client, 'metric_points', [{ ...surface, metric_name: 'm' }])
  await insertRows(client, 'session_identities', [{ ...columns, identifier: 'anna' }])
  await insertRows(client, 'session_heartbeats', [columns])
  await insertRows(client, 'ingest_log', [
    {
      ...surface,
      job_id: sessionId,
      page_requests: [{ session_hash: sessionId.padEnd(16), page_id: 'p', sequence: 0 }],
    },
  ])
  await insertRows(client, 'build_reports', [{ ...surface, release_slug: 'rel_1' }])
  await insertRows(client, 'finding_frames', [{ ...surface, variant_id: 'v'.repeat(16), release_slug: 'rel_1' }])
  await storeChunk(client, objects, owner, {
    windowId: 'w',
    segmentId: '0',
    events: [{ type: 2, timestamp: 1 }],
    receivedAtMs: receivedAt,
  })
  const objectKey = letterKey(workspaceId, age)
  await objects.put(objectKey, Buffer.from('letter'), { contentType: 'x' })
  await insertRows(client, 'dead_letters', [{ ...columns, session_id: '', queue: 'traces', object_key: objectKey }])
}

const letterKey = (workspaceId: string, age: number) => `dead-letters/${workspaceId}/srf_1/traces/${age}/job`

/** Returns the number of rows of a workspace by table. Views add rows to derived tables that are merged later: their days count. */
async function rowsOf(workspaceId: string): Promise<Record<string, number>> {
  const counts = RETAINED_TABLES.map(async ({ table, day, isSource }) => {
    const result = await client.query({
      query: `SELECT ${isSource ? 'count()' : `uniqExact(${day})`} AS n FROM ${table} WHERE workspace_id = '${workspaceId}'`,
      format: 'JSONEachRow',
    })
    return [table, Number((await result.json<{ n: number }>())[0]?.n)] as const
  })
  return Object.fromEntries(await Promise.all(counts))
}

const keysOf = async (prefix: string) => (await listObjects(services.s3, prefix)).map(({ key }) => key)

it('deletes rows and objects past the retention of a workspace, counts them, and touches no other workspace', async () => {
  const before = await rowsOf(OTHER.id)
  expect(await rowsOf(SHORT.id)).toEqual(before)
  const objectsOfOther = await keysOf(`replays/${OTHER.id}/`)
  // The chunk that expires today was uploaded again, under the same key, after its first object was deleted.
  const again = { workspaceId: SHORT.id, surfaceId: 'srf_1', sessionId: 's11' }
  await storeChunk(client, objects, again, { windowId: 'w', segmentId: '0', events: [{ type: 2, timestamp: 1 }] })

  const directory = createDirectory(redis)
  const kinds = [
    'traces',
    'logs',
    'metrics',
    'findings',
    'sessions',
    'replay',
    'build-reports',
    'dead-letters',
  ] as const
  await directory.changeRetention(SHORT.id, () => ({
    ...Object.fromEntries(kinds.map(kind => [kind, 7])),
    metrics: 12,
  }))
  const metrics = createMetrics('test')
  const upkeep = startUpkeep({
    queues: onOneServer(redis),
    directoryRedis: redis,
    clickhouse: client,
    objects,
    retentionDays: 30,
    deliveryQueue: openDeliveryQueue(redis),
    logger: pino({ level: process.env.TEST_LOG ?? 'silent' }),
    metrics: createUpkeepMetrics(metrics),
  })
  await until('the retention is applied', () => redis.hexists(upkeepKeys.done, 'retention'), {
    deadlineMs: 90_000,
  })
  const swept = async () => (await redis.hmget(upkeepKeys.done, 'uploads', 'maps')).every(at => at !== null)
  await until('uploads and maps are swept', swept, { deadlineMs: 90_000 })
  expect(await metrics.registry.metrics()).toMatch(
    /penstock_deleted_objects_total\{[^}]*prefix="dead-letters"[^}]*\} 1$/m,
  )
  await upkeep.stop()

  const withoutOldest = Object.fromEntries(Object.entries(before).map(([table, rows]) => [table, rows - 1]))
  // Metrics are kept longer, and one chunk was uploaded again.
  const { metric_points, replay_chunks } = before
  const expected = { ...withoutOldest, metric_points, replay_chunks }
  expect(await rowsOf(SHORT.id)).toEqual(expected)
  expect(await rowsOf(OTHER.id)).toEqual(before)
  expect(await keysOf(`replays/${OTHER.id}/`)).toEqual(objectsOfOther)
  const kept = ['s0', 's11', 's3'].map(session => `replays/${SHORT.id}/srf_1/${session}/w/0.jsonl.gz`)
  expect(await keysOf(`replays/${SHORT.id}/`)).toEqual(kept)
  expect(await keysOf(`dead-letters/${SHORT.id}/`)).toEqual([letterKey(SHORT.id, 0), letterKey(SHORT.id, 3)])
  expect(await keysOf(`dead-letters/${OTHER.id}/`)).toHaveLength(AGES.length)

  const deleted = await client.query({
    query: `SELECT workspace_id AS w, table_name AS t, sum(rows) AS n FROM deleted_rows WHERE reason = 'expired' GROUP BY w, t ORDER BY t`,
    format: 'JSONEachRow',
  })
  const sources = RETAINED_TABLES.filter(({ isSource }) => isSource).map(({ table }) => table)
  const expired = sources.filter(table => table !== 'metric_points').sort()
  expect(
    (await deleted.json<{ w: string; t: string; n: number }>()).map(row => ({ ...row, n: Number(row.n) })),
  ).toEqual(expired.map(t => ({ w: SHORT.id, t, n: 1 })))
  // Most rows of these days are deleted, so that the parts were written again without them.
  const masked = await client.query({
    query: `SELECT count() AS n FROM system.parts WHERE active AND database = '${DATABASE}' AND has_lightweight_delete`,
    format: 'JSONEachRow',
  })
  expect(await masked.json()).toEqual([{ n: 0 }])
}, 120_000)

it('deletes releases past the retention of a workspace with their manifests, and no others', async () => {
  const directory = createDirectory(redis)
  const releases = createReleaseStore(redis)
  const version = { version: 1, surfaceId: 'srf_1', commit: null, metadata: null } as const
  const manifests: string[] = []
  for (const { id: workspaceId } of [SHORT, OTHER]) {
    for (const age of [40, 60]) {
      const createdAt = new Date(Date.now() - age * DAY_MS).toISOString()
      const slug = `rel_${age}`
      await releases.register({ ...version, workspaceId, slug, name: slug, createdAt })
      const objectKey = manifestKey(workspaceId, slug, 1)
      manifests.push(objectKey)
      await objects.put(objectKey, Buffer.from('{}'), { contentType: 'application/json' })
    }
  }
  await directory.changeRetention(SHORT.id, () => ({ releases: 50 }))
  await expireReleases({
    directory,
    directoryRedis: redis,
    releases,
    hasUploads: release => hasUploads(redis, release),
    removeUploads: release => removeUploads(redis, release),
    store: objects,
    objects: { delete: async (_, keys) => objects.deleteMany(keys) },
    logger: pino({ level: 'silent' }),
    now: Date.now,
    assertElected: async () => {},
  })
  const slugsOf = async (id: string) =>
    (await releases.releases(id, { limit: 10 })).releases.map(({ release }) => release.slug)
  expect(await slugsOf(SHORT.id)).toEqual(['rel_40'])
  expect(await slugsOf(OTHER.id)).toEqual(['rel_40', 'rel_60'])
  const left = [...(await keysOf(`releases/${SHORT.id}/`)), ...(await keysOf(`releases/${OTHER.id}/`))]
  expect(left).toEqual(manifests.filter(key => key !== manifestKey(SHORT.id, 'rel_60', 1)))
})
