import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectSpanLossHours } from '../../../clickhouse/queries/traces/completeness/select-span-loss-hours.ts'
import { createOlderDatabase, type OlderDatabase } from '../../support/services/older-database.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const ROWS = 60_000

describe('migration 0006', () => {
  let database: OlderDatabase
  let client: ClickHouseClient

  beforeAll(async () => {
    database = await createOlderDatabase(sharedServices().clickhouseUrl, `migrate_with_data_${process.pid}`, '0006')
    client = database.client
  })
  afterAll(() => database?.drop())

  async function select<T>(query: string): Promise<T[]> {
    return (await client.query({ query, format: 'JSONEachRow' })).json<T>()
  }

  async function addLogs(from: number): Promise<void> {
    await client.command({
      query: `INSERT INTO logs (workspace_id, received_at, timestamp, body)
              SELECT 'ws', now64(3), now64(9), concat('Order ', toString(number), ' was SHIPPED')
              FROM numbers(${from}, ${ROWS})`,
    })
  }

  const found = (word: string) =>
    select<{ body: string }>(`SELECT body FROM logs WHERE workspace_id = 'ws' AND hasToken(lower(body), '${word}')`)

  it('finds words of records from before and after it, and reads no other granules', async () => {
    await addLogs(1_000_000)
    await database.migrate()
    await addLogs(2_000_000)

    expect(await found('1000007')).toEqual([{ body: 'Order 1000007 was SHIPPED' }])
    expect(await found('2000007')).toEqual([{ body: 'Order 2000007 was SHIPPED' }])
    expect(await found('3000007')).toEqual([])
    const indexes =
      "SELECT name FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'logs'"
    expect(await select(`${indexes} ORDER BY name`)).toEqual([
      { name: 'by_attribute' },
      { name: 'logs_by_time' },
      { name: 'logs_by_token' },
      { name: 'logs_by_trace' },
    ])

    // Existing parts are indexed in the background.
    await expect.poll(granulesForUnknownWord, { timeout: 20_000 }).toMatch(/^Granules: 0\/\d\d$/)
  })

  async function granulesForUnknownWord(): Promise<string | undefined> {
    const plan = await select<{ explain: string }>(
      `EXPLAIN indexes = 1 SELECT body FROM logs WHERE hasToken(lower(body), 'zebra')
       SETTINGS use_skip_indexes_on_data_read = 0`,
    )
    const lines = plan.map(row => row.explain.trim())
    return lines.slice(lines.indexOf('Name: logs_by_token')).find(line => line.startsWith('Granules:'))
  }

  it('may run twice', async () => {
    await client.command({ query: 'ALTER TABLE schema_migrations DELETE WHERE id = 6 SETTINGS mutations_sync = 1' })
    await database.migrate()
    expect(await found('1000007')).toHaveLength(1)
    expect(await found('2000007')).toHaveLength(1)
  })
})

describe('migration 0028', () => {
  let database: OlderDatabase

  beforeAll(async () => {
    database = await createOlderDatabase(sharedServices().clickhouseUrl, `migrate_losses_${process.pid}`, '0028')
  })
  afterAll(() => database?.drop())

  /** Stores a loss of each kind, each in an hour of its own, and what is none. Returns the hours with losses. */
  async function store(first: number): Promise<number[]> {
    const time = (hour: number) => (first + hour) * 3_600
    const rows: readonly (readonly [string, Record<string, unknown>])[] = [
      ['ingest_log', { received_at: 1_000 * time(0), signal: 'traces', dead_lettered: { invalid_tag: 1 } }],
      ['ingest_log', { received_at: 1_000 * time(1), signal: 'traces', discarded: { invalid_tag: 1 } }],
      ['request_counts', { received_hour: time(2), signal: 'traces', outcome: 'refused-413', requests: 1 }],
      ['deleted_rows', { received_hour: time(3), table_name: 'spans', reason: 'erased', rows: 1 }],
      ['ingest_log', { received_at: 1_000 * time(4), signal: 'traces', rejected: { exceptions_over_limit: 1 } }],
      ['ingest_log', { received_at: 1_000 * time(5), signal: 'logs', dead_lettered: { invalid_tag: 1 } }],
      ['request_counts', { received_hour: time(6), signal: 'traces', outcome: 'accepted', requests: 1 }],
      ['request_counts', { received_hour: time(7), signal: 'logs', outcome: 'refused-413', requests: 1 }],
      ['deleted_rows', { received_hour: time(8), table_name: 'logs', reason: 'erased', rows: 1 }],
    ]
    const other = ['deleted_rows', { ...rows[3]?.[1], received_hour: time(9), workspace_id: 'other' }] as const
    for (const [table, row] of [...rows, other]) {
      const values = [{ workspace_id: 'ws', surface_id: 'srf', ...row }]
      await database.client.insert({ table, format: 'JSONEachRow', values, clickhouse_settings: { async_insert: 0 } })
    }
    return [0, 1, 2, 3].map(hour => first + hour)
  }

  it('knows the hours with losses of spans from before and after it', async () => {
    const thisHour = Math.floor(Date.now() / 3_600_000)
    const before = await store(thisHour - 40)
    await database.migrate()
    const after = await store(thisHour - 20)
    const found = await selectSpanLossHours(database.client, 'ws', AbortSignal.timeout(10_000))
    expect([...found].sort()).toEqual([...before, ...after])
  })

  it('knows them also if no view has seen their rows, as in parts from a backup, when it is migrated again', async () => {
    const hours = async () =>
      [...(await selectSpanLossHours(database.client, 'ws', AbortSignal.timeout(10_000)))].sort()
    const known = await hours()
    await database.client.command({ query: 'TRUNCATE TABLE span_loss_hours' })
    expect(await hours()).toEqual([])
    await database.migrate()
    expect(await hours()).toEqual(known)
  })
})
