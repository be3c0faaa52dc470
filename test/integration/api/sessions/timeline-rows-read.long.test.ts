import { afterAll, beforeAll, expect, it } from 'vitest'
import { loadTimeline } from '../../../../api/sessions/timeline.ts'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { UNIX_NANO_MAX } from '../../../../clickhouse/queries/sessions/timeline/select-timeline.ts'
import { TIMELINE_KINDS } from '../../../../schemas/http/sessions/timeline.ts'
import { createDatabase } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const DATABASE = `timeline_rows_read_${process.pid}`
const GRANULE = 8_192
/** Rows of other sessions, and of another trace in each of as many. */
const OTHERS = 60 * GRANULE

let client: ClickHouseClient
let rowsRead = 0

beforeAll(async () => {
  client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
  const at = Date.now() - 1_000
  const insert = (query: string) =>
    client.command({
      query,
      clickhouse_settings: { async_insert: 0, wait_end_of_query: 1, min_insert_block_size_rows: '1000000' },
    })
  const arrival = `fromUnixTimestamp64Milli(${at})`
  // The traces of the session `mine` are together, and of the records every hundredth granule has one.
  for (const [rows, session] of [
    [OTHERS, "concat('other ', toString(number))"],
    [40 * 25, "'mine'"],
  ] as const) {
    const trace =
      session === "'mine'"
        ? "concat('mine', leftPad(toString(intDiv(number, 25)), 12, '0'))"
        : 'leftPad(toString(number), 16)'
    await insert(`
      INSERT INTO spans (workspace_id, surface_id, received_at, trace_id, span_id, start_time_unix_nano, end_time_unix_nano, session_id)
      SELECT 'ws_1', 'srf_1', ${arrival}, ${trace}, leftPad(toString(number), 8), ${at}000000 + number, ${at}000000 + number, ${session}
      FROM numbers(${rows})`)
    await insert(`
      INSERT INTO logs (workspace_id, surface_id, received_at, timestamp, body, session_id)
      SELECT 'ws_1', 'srf_1', ${arrival}, fromUnixTimestamp64Nano(toInt64(${at}000000 + number)), toString(number),
        ${session}
      FROM numbers(${rows})`)
    await insert(`
      INSERT INTO session_heartbeats (workspace_id, surface_id, session_id, received_at)
      SELECT 'ws_1', 'srf_1', ${session}, ${arrival} + toIntervalMillisecond(number % 1000) FROM numbers(${rows})`)
  }
  for (const table of ['spans', 'logs', 'session_heartbeats', 'session_traces']) {
    await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` })
  }
  const { reads } = client
  const read: typeof reads.read = async (...query) => {
    const summary = await reads.read(...query)
    rowsRead += Number((JSON.parse(summary) as { read_rows: string }).read_rows)
    return summary
  }
  Object.assign(client, { reads: { read } })
}, 120_000)
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

it('reads for a page of a timeline a few granules of each table, however many rows other sessions have', async () => {
  const time = { since: 0n, until: UNIX_NANO_MAX, after: undefined }
  const search = {
    workspaceId: 'ws_1',
    sessionId: 'mine',
    kinds: TIMELINE_KINDS,
    ...time,
    limit: 50,
    merges: new Map(),
  }
  const timeline = await loadTimeline(client, search, AbortSignal.timeout(20_000))
  expect(timeline?.entries).toHaveLength(50)
  // Three tables have half a million rows each. The filter of sessions is wrong for one granule in a hundred.
  expect(rowsRead).toBeLessThan(40 * GRANULE)
})
