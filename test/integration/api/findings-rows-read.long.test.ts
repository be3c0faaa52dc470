import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadFinding } from '../../../api/findings/load-finding.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { FindingsFilter } from '../../../clickhouse/queries/findings/findings-filter.ts'
import { selectFindingHasTrace } from '../../../clickhouse/queries/findings/select-finding-traces.ts'
import { selectFindingsPage } from '../../../clickhouse/queries/findings/select-findings-page.ts'
import { selectFindingsSnapshot } from '../../../clickhouse/queries/findings/select-findings-snapshot.ts'
import { selectRecurrences } from '../../../clickhouse/queries/findings/select-recurrences.ts'
import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import { createDatabase } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `findings_rows_read_${process.pid}`
const workspaceId = 'ws_1'
const DAYS = 10
const FINDINGS = 400
/** Findings per day, which is independent of the number of their occurrences. */
const OCCURRENCES_A_DAY = 40_000

describe('reads of findings', () => {
  const end = Date.now() - HOUR_MS
  let client: ClickHouseClient
  let rowsRead = 0

  beforeAll(async () => {
    client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
    for (let day = DAYS; day > 0; day--) {
      await client.command({
        query: `
          INSERT INTO exceptions (workspace_id, surface_id, received_at, stored_at, finding_id, variant_id, trace_id, type, message)
          WITH fromUnixTimestamp64Milli(toInt64(${end - day * DAY_MS} + intDiv(number * ${DAY_MS}, ${OCCURRENCES_A_DAY}))) AS at
          SELECT '${workspaceId}', concat('srf_', toString(number % 4)), at, at,
            concat('fnd_', translate(leftPad(toString(number % ${FINDINGS}), 26, 'a'), '0189', 'wxyz')), sipHash128(number % ${FINDINGS}),
            reinterpretAsFixedString(sipHash128(${day}, number)), 'T', concat('message ', toString(number % ${FINDINGS}))
          FROM numbers(${OCCURRENCES_A_DAY})`,
        clickhouse_settings: { async_insert: 0, wait_end_of_query: 1, min_insert_block_size_rows: '100000' },
      })
    }
    for (const table of ['findings', 'finding_variants', 'finding_buckets', 'exceptions']) {
      await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` })
    }
    const { reads } = client
    const read: typeof reads.read = async (...query) => {
      const summary = await reads.read(...query)
      rowsRead += Number((JSON.parse(summary) as { read_rows: string }).read_rows)
      return summary
    }
    Object.assign(client, { reads: { read } })
  })
  afterAll(async () => {
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  const signal = () => AbortSignal.timeout(20_000)
  const workspace = { workspaceId, merges: new Map<string, string>() }

  async function page(filter: Partial<FindingsFilter>): Promise<{ found: number; rows: number }> {
    const none = { surfaceId: undefined, serviceName: undefined, fromMs: undefined, toMs: undefined, text: undefined }
    const snapshot = await selectFindingsSnapshot(client, signal())
    rowsRead = 0
    const key = { ...workspace, snapshot, filter: { ...none, ...filter }, limit: 51, after: undefined }
    return { found: (await selectFindingsPage(client, key, signal())).length, rows: rowsRead }
  }

  /** Rows of one day of findings and the next that it reaches into, read for an hour and for a day; twelve days have 4,800. */
  const A_DAY = 4 * FINDINGS
  /** Memberships of the variants of the window, which are looked for first. */
  const MEMBERSHIPS = 2 * FINDINGS

  it.each<[string, Partial<FindingsFilter>, number]>([
    ['the newest', {}, A_DAY + MEMBERSHIPS],
    ['those of a surface', { surfaceId: 'srf_3' }, A_DAY + 2 * MEMBERSHIPS],
    ['those of the last hours', { fromMs: end - HOUR_MS }, 1.5 * A_DAY + 2 * MEMBERSHIPS],
    ['those of two days', { fromMs: end - 5 * DAY_MS, toMs: end - 3 * DAY_MS }, 2 * A_DAY + 2 * MEMBERSHIPS],
    // The rows of five minutes of a day, as many as occurrences here. They are ordered for the graph of one finding.
    [
      'those of an hour',
      { fromMs: noonBefore(end) + 1, toMs: noonBefore(end) + HOUR_MS },
      OCCURRENCES_A_DAY + 2 * MEMBERSHIPS,
    ],
    ['those with a word', { text: 'MESSAGE' }, 3 * (DAYS + 2) * FINDINGS + 2 * MEMBERSHIPS],
  ])('select %s by reading only rows of the days concerned', async (_, filter, atMost) => {
    const { found, rows } = await page(filter)
    expect(found).toBeGreaterThan(50)
    expect(rows).toBeLessThanOrEqual(atMost)
  })

  it('search for an unknown word by reading one row for each finding and day', async () => {
    const { found, rows } = await page({ text: 'zebra' })
    expect(found).toBe(0)
    expect(rows).toBeLessThanOrEqual(2 * (DAYS + 1) * FINDINGS + 4 * MEMBERSHIPS)
  })

  const idOf = (number: number) => `fnd_${translate(String(number)).padStart(26, 'a')}`
  const translate = (digits: string) => digits.replaceAll(/[0189]/g, digit => 'wxyz'['0189'.indexOf(digit)] ?? '')

  it('choose those of a status by reading one row for each finding and day, in two steps', async () => {
    const findingIds = Array.from({ length: FINDINGS / 2 }, (_, i) => idOf(i))
    const not = await page({ chosen: { are: 'not', findingIds } })
    expect(not.found).toBeGreaterThan(50)
    expect(not.rows).toBeLessThanOrEqual(A_DAY + 2 * FINDINGS + 2 * MEMBERSHIPS)
    const only = await page({ chosen: { are: 'only', findingIds } })
    expect(only.found).toBe(51)
    expect(only.rows).toBeLessThanOrEqual(A_DAY + 2 * FINDINGS + 2 * MEMBERSHIPS)
    const unknown = Array.from({ length: 10_000 }, (_, i) => `fnd_${translate(String(i)).padStart(26, 'b')}`)
    const none = await page({ chosen: { are: 'only', findingIds: unknown } })
    expect(none.found).toBe(0)
    expect(none.rows).toBeLessThanOrEqual(2 * (DAYS + 1) * FINDINGS + 4 * MEMBERSHIPS + 4 * unknown.length)
  })

  it('find which have occurred since a day by reading one row for each finding and day since', async () => {
    const day = Math.floor((end - 3 * DAY_MS) / DAY_MS)
    const findings = Array.from({ length: 10_000 }, (_, i) => ({ findingId: idOf(i), day: day + (i % 2) }))
    rowsRead = 0
    const found = await selectRecurrences(client, workspace, findings, signal())
    expect(found.length).toBe(FINDINGS)
    expect(found.reduce((sum, { occurrenceCount }) => sum + Number(occurrenceCount), 0)).toBeGreaterThan(
      OCCURRENCES_A_DAY,
    )
    expect(rowsRead).toBeLessThanOrEqual(5 * FINDINGS + 4 * findings.length)
  })

  it('show one finding and look up one of its traces without reading occurrences of others', async () => {
    const findingId = `fnd_${'7'.padStart(26, 'a')}`
    rowsRead = 0
    const finding = await loadFinding(
      client,
      { ...workspace, findingId, findingIds: [findingId], variantIds: undefined },
      {},
      Date.now(),
      signal(),
      { releaseOf: async () => undefined, rules: Promise.resolve([]) },
    )
    expect(finding?.occurrenceCount).toBe((DAYS * OCCURRENCES_A_DAY) / FINDINGS)
    // Out of 400,000 occurrences and as many rows of five minutes, it reads one or two granules of each day, of each table.
    expect(rowsRead).toBeLessThanOrEqual(30_000)

    const [trace] = await (
      await client.query({
        query: `SELECT lower(hex(trace_id)) AS id FROM exceptions WHERE finding_id = '${findingId}' LIMIT 1`,
        format: 'JSONEachRow',
      })
    ).json<{ id: string }>()
    rowsRead = 0
    const key = { workspaceId, findingIds: [findingId], traceId: trace?.id ?? '' }
    expect(await selectFindingHasTrace(client, key, signal())).toBe(true)
    expect(rowsRead).toBeLessThanOrEqual(4 * 8_192)
  })
})

/** 12:00 UTC of the day before yesterday or of yesterday, at least 24 hours ago. */
function noonBefore(ms: number): number {
  return Math.floor(ms / DAY_MS) * DAY_MS - DAY_MS + 12 * HOUR_MS
}
