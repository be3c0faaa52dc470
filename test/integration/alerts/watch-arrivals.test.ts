import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { watchArrivals } from '../../../alerts/calling/watch-arrivals.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { FindingWork } from '../../../schemas/records/finding-work.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { untouchedFinding } from '../../../shared/directory/findings/write-finding-work.ts'
import { waitingOccasions } from '../../../shared/directory/occasions.ts'
import { upkeepKeys } from '../../../shared/directory/record.ts'
import { createDatabase } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `watch_arrivals_${process.pid}`
/** More than the words of a command in a script of Redis, and than the findings that a query can name. */
const FINDINGS = 9_000

let clickhouse: ClickHouseClient
let redis: Redis

beforeAll(async () => {
  redis = new Redis(`${sharedServices().redisUrl}/14`)
  await redis.flushdb()
  clickhouse = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
})
afterAll(async () => {
  redis?.disconnect()
  await clickhouse?.command({ query: `DROP DATABASE ${DATABASE}` })
  await clickhouse?.close()
})

it('finds thousands of findings that were new, were resolved and came back in one window, and records quiet ones', async () => {
  const toMs = Math.floor(Date.now() / 2_000) * 2_000
  const [fromMs, resolvedMs] = [toMs - 60_000, toMs - 30_000]
  for (const atMs of [resolvedMs - 10_000, resolvedMs + 10_000]) {
    await clickhouse.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, stored_at, finding_id, variant_id)
              SELECT 'ws_1', 'srf_1', fromUnixTimestamp64Milli(toInt64(${atMs})), now64(3),
                concat('fnd_', leftPad(translate(toString(number), '0123456789', 'abcdefghij'), 26, 'a')), sipHash128(number) FROM numbers(${FINDINGS})`,
      clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
    })
  }
  await redis.hset(upkeepKeys.watched, 'ws_1/srf_1', fromMs, 'ws_2/srf_2', fromMs)

  const statusAt = new Date(resolvedMs).toISOString()
  const resolved = (findingId: string): FindingWork => ({
    ...untouchedFinding({ workspaceId: 'ws_1', findingId }, statusAt),
    ...{ status: 'resolved', statusAt },
  })
  const surfaces = ['1', '2'].map(n => ({ workspaceId: `ws_${n}`, surfaceId: `srf_${n}` }))
  await watchArrivals({
    ...{ clickhouse, redis, now: Date.now, assertElected: async () => {} },
    directory: {
      ...createDirectory(redis),
      alertingWorkspaces: async () => ['ws_1', 'ws_2'],
      surfaceIds: async workspaceId => [workspaceId.replace('ws', 'srf')],
      findingWork: async (_, ids) => ids.map(resolved),
    },
    settled: async () => ({
      readAtMs: toMs,
      surfaces: surfaces.map(surface => ({ ...surface, exceptionsMs: toMs, failuresMs: undefined })),
    }),
  })

  const occasions = await waitingOccasions(redis, 3 * FINDINGS)
  const found = occasions.map(({ occasion }) => `${occasion.kind} ${'findingId' in occasion && occasion.findingId}`)
  expect(new Set(found).size).toBe(2 * FINDINGS)
  expect(Map.groupBy(occasions, ({ occasion }) => occasion.kind).get('finding.regressed')).toHaveLength(FINDINGS)
  expect(await redis.hlen(upkeepKeys.called('ws_1'))).toBe(FINDINGS)
  expect(await redis.hmget(upkeepKeys.watched, 'ws_1/srf_1', 'ws_2/srf_2')).toEqual([`${toMs}`, `${toMs}`])
})
