import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { createDatabase, insertSpans } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const DATABASE = `past_days_${process.pid}`

let client: ClickHouseClient

beforeAll(async () => {
  client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
})
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

async function select<T>(query: string): Promise<T[]> {
  return (await client.query({ query, format: 'JSONEachRow' })).json<T>()
}

it('lets the parts of a past day become one in the tables that are read by key', async () => {
  const found = await select<{ name: string; engine_full: string }>(
    `SELECT name, engine_full FROM system.tables WHERE database = '${DATABASE}' AND engine LIKE '%MergeTree'
       AND match(engine_full, 'min_age_to_force_merge_seconds = 86400')
       AND match(engine_full, 'min_age_to_force_merge_on_partition_only = (1|true)')
       AND match(engine_full, 'enable_max_bytes_limit_for_min_age_to_force_merge = (1|true)') ORDER BY name`,
  )
  const ofFindings = ['finding_buckets', 'finding_frames', 'findings']
  const others = ['release_frames', 'replay_chunks']
  const ofSessions = ['session_heartbeats', 'session_identities', 'session_traces']
  expect(found.map(({ name }) => name)).toEqual([
    'exception_twins',
    'exceptions',
    'failures',
    ...ofFindings,
    ...others,
    ...ofSessions,
    'spans',
    'trace_buckets',
  ])
})

it('merges a past day once its parts are old, and no part of it before', async () => {
  const receivedAt = Date.now() - 3 * DAY_MS
  const traceId = 'a'.repeat(32)
  for (const spanId of ['00000000000000a1', '00000000000000a2']) {
    await insertSpans(client, [{ traceId, spanId, receivedAt }])
  }
  const parts = async () => {
    const [row] = await select<{ n: string }>(
      `SELECT count() AS n FROM system.parts WHERE active AND database = '${DATABASE}' AND table = 'spans'`,
    )
    return Number(row?.n)
  }
  expect(await parts()).toBe(2)
  await client.command({ query: 'ALTER TABLE spans MODIFY SETTING min_age_to_force_merge_seconds = 1' })
  await until('one part', async () => (await parts()) === 1, { deadlineMs: 60_000 })
  expect(await select('SELECT count() AS n FROM spans')).toEqual([{ n: 2 }])
}, 90_000)
