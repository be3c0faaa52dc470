import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { createOlderDatabase, type OlderDatabase } from '../../support/services/older-database.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

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
