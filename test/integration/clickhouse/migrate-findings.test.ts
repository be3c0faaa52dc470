import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { createOlderDatabase, type OlderDatabase } from '../../support/services/older-database.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

describe('migration 0012', () => {
  let database: OlderDatabase
  let client: ClickHouseClient

  beforeAll(async () => {
    database = await createOlderDatabase(sharedServices().clickhouseUrl, `migrate_findings_${process.pid}`, '0012')
    client = database.client
  })
  afterAll(() => database?.drop())

  async function select(query: string): Promise<unknown[]> {
    return (await client.query({ query, format: 'JSONCompactEachRow' })).json<unknown>()
  }

  /** Inserts 100 occurrences of five findings, two hours apart, each in its own trace. */
  async function addExceptions(): Promise<void> {
    await client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, finding_id, trace_id, session_id, type, message)
              SELECT 'ws', 'srf', now64(3) - 60 - number * 7200, concat('fnd_', leftPad(toString(number % 5), 26, 'a')),
                unhex(leftPad(hex(number + 1), 32, '0')), toString(number % 10), 'T', concat('message ', toString(number))
              FROM numbers(100)`,
      clickhouse_settings: { async_insert: 0 },
    })
  }

  const facts = async () => ({
    buckets: await select('SELECT sum(occurrence_count), uniqExact(finding_id) FROM finding_buckets'),
    days: await select(
      `SELECT finding_id, sum(occurrence_count), uniqCombinedMerge(14)(traces),
              uniqCombinedMerge(14)(sessions), splitByChar('\n', max(latest).3)[1]
       FROM findings GROUP BY finding_id ORDER BY finding_id`,
    ),
    /** Counts rows by the day of their arrival. */
    unlike: await select(
      `SELECT count() FROM (SELECT day, finding_id, max(latest).2 AS at,
         min(first_received_at) AS first, max(last_received_at) AS last FROM findings GROUP BY ALL) AS known
       FULL JOIN (SELECT toDate(received_at) AS day, finding_id, max(received_at) AS at,
         min(received_at) AS first FROM exceptions GROUP BY ALL) AS had
       USING (day, finding_id) WHERE known.at != had.at OR known.first != had.first OR known.last != had.at`,
    ),
    traces: await select(
      `SELECT count(), sum(total), max(first.1) < toDateTime64('2299-01-01', 3, 'UTC')
       FROM (SELECT trace_id, sum(occurrence_count) AS total, min(first_arrival) AS first FROM finding_traces GROUP BY 1)`,
    ),
  })

  it('counts earlier and later occurrences once each', async () => {
    await addExceptions()
    await addExceptions()
    await database.migrate()
    await addExceptions()

    const known = await facts()
    expect(known).toEqual({
      buckets: [[300, 5]],
      days: ['0', '1', '2', '3', '4'].map(n => [`fnd_${n.padStart(26, 'a')}`, 60, 20, 2, 'T']),
      unlike: [[0]],
      traces: [[100, 300, 1]],
    })
  })

  it('may run twice, with new data in between', async () => {
    const before = await facts()
    await client.command({ query: 'ALTER TABLE schema_migrations DELETE WHERE id = 12 SETTINGS mutations_sync = 1' })
    await client.command({ query: 'OPTIMIZE TABLE exceptions FINAL' })
    await database.migrate()
    expect(await facts()).toEqual(before)
    await addExceptions()
    expect((await facts()).buckets).toEqual([[400, 5]])
  })

  it('keeps the rows that lists are read from for two days, each counted once', async () => {
    const [[blocks, rows] = []] = (await select(
      'SELECT uniqExact(_block_number), count() FROM finding_arrivals',
    )) as number[][]
    expect([blocks, rows]).toEqual([2, 10])
    await client.command({ query: 'OPTIMIZE TABLE finding_arrivals FINAL' })
    expect(await select('SELECT uniqExact(_block_number), count() FROM finding_arrivals')).toEqual([[2, 10]])
    expect(
      await select(
        "SELECT extract(engine_full, 'TTL ([^S]*) SETTINGS') FROM system.tables WHERE database = currentDatabase() AND name = 'finding_arrivals'",
      ),
    ).toEqual([['stored_at + toIntervalHour(48)']])
  })
})

describe('migration 0021', () => {
  let database: OlderDatabase

  beforeAll(async () => {
    database = await createOlderDatabase(sharedServices().clickhouseUrl, `migrate_details_${process.pid}`, '0021')
  })
  afterAll(() => database?.drop())

  const select = async (query: string) =>
    (await database.client.query({ query, format: 'JSONCompactEachRow' })).json<unknown>()

  const addExceptions = (first: number) =>
    database.client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, occurred_at_unix_nano, finding_id, trace_id,
                session_id, service_version, type, message)
              SELECT 'ws', 'srf', now64(3) - 60 - number * 7200, number, concat('fnd_', leftPad(toString(number % 5), 26, 'a')),
                unhex(leftPad(hex(number), 32, '0')), toString(number % 10), toString(number % 3), 'T', toString(number)
              FROM numbers(${first}, 100)`,
      clickhouse_settings: { async_insert: 0 },
    })

  const detailsIn = (table: string) =>
    select(
      `SELECT finding_id, argMaxMerge(${table}.type), argMaxMerge(${table}.message), uniqCombinedMerge(14)(traces),
              uniqCombinedMerge(14)(sessions), arraySort(groupUniqArrayMerge(20)(service_versions))
       FROM ${table} GROUP BY finding_id ORDER BY finding_id`,
    )

  it('copies the details of findings, and may run twice with new data in between', async () => {
    const findingId = `fnd_${'0'.padStart(26, 'a')}`
    await addExceptions(1)
    await database.migrate()
    const copied = await detailsIn('finding_details')
    expect(copied).toHaveLength(5)
    expect(copied[0]).toEqual([findingId, 'T', '100', 20, 2, ['0', '1', '2']])
    expect(copied).toEqual(await detailsIn('findings'))
    await addExceptions(51)
    const added = await detailsIn('finding_details')
    expect(added[0]).toEqual([findingId, 'T', '150', 30, 2, ['0', '1', '2']])
    expect(added).toEqual(await detailsIn('findings'))
    await database.client.command({
      query: 'ALTER TABLE schema_migrations DELETE WHERE id = 21 SETTINGS mutations_sync = 1',
    })
    await database.migrate()
    expect(await detailsIn('finding_details')).toEqual(added)
  })

  it('copies what an insert stores that was in progress when the view was created', async () => {
    const older = await createOlderDatabase(sharedServices().clickhouseUrl, `migrate_late_${process.pid}`, '0021')
    const rows = async (query: string) =>
      (await older.client.query({ query, format: 'JSONCompactEachRow' })).json<unknown>()
    const ids = (table: string) => rows(`SELECT DISTINCT finding_id FROM ${table}`)
    try {
      const insert = older.client.command({
        query: `INSERT INTO exceptions (workspace_id, received_at, finding_id, type)
                SELECT 'ws', now64(3), 'fnd_${'b'.repeat(26)}', 'T' FROM numbers(1) WHERE sleepEachRow(3) = 0`,
        clickhouse_settings: { async_insert: 0 },
      })
      const inProgress = `SELECT 1 FROM system.processes WHERE query_kind = 'Insert' AND current_database = currentDatabase()`
      await until('the insert has begun', async () => (await rows(inProgress)).length > 0, { deadlineMs: 10_000 })
      await Promise.all([older.migrate(), insert])
      expect(await ids('findings')).toEqual([[`fnd_${'b'.repeat(26)}`]])
      expect(await ids('finding_details')).toEqual(await ids('findings'))
    } finally {
      await older.drop()
    }
  })
})
