import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import {
  type FoundSessions,
  type SessionsFilter,
  selectSessionsPage,
} from '../../../../clickhouse/queries/sessions/select-sessions-page.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { createDatabase } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const DATABASE = `session_rows_read_${process.pid}`
const workspaceId = 'ws_1'
const DAYS = 10
/** Requests of each kind and day. */
const REQUESTS_A_DAY = 20_000
const TABLES = ['session_heartbeats', 'session_identities', 'replay_chunks']
const NONE: SessionsFilter = {
  user: undefined,
  surfaceId: undefined,
  hasFinding: false,
  hasReplay: false,
  fromMs: undefined,
  toMs: undefined,
}

describe('a list of sessions', () => {
  const end = Date.now()
  let client: ClickHouseClient
  let rowsRead = 0

  beforeAll(async () => {
    client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
    for (const table of TABLES) {
      const identifier =
        table === 'session_identities' ? ['identifier,', "concat('user-', toString(number % 7000)),"] : ['', '']
      for (let day = DAYS; day > 0; day--) {
        await client.command({
          query: `
            INSERT INTO ${table} (workspace_id, surface_id, ${identifier[0]} session_id, received_at)
            SELECT '${workspaceId}', 'srf_1', ${identifier[1]} concat('day ${day} ', toString(intDiv(number, 4))),
              fromUnixTimestamp64Milli(toInt64(${end - day * DAY_MS} + intDiv(number * ${DAY_MS}, ${REQUESTS_A_DAY})))
            FROM numbers(${REQUESTS_A_DAY})`,
          clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
        })
      }
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

  async function page(filter: Partial<SessionsFilter>): Promise<FoundSessions & { rows: number }> {
    rowsRead = 0
    const key = {
      workspaceId,
      filter: { ...NONE, ...filter },
      beforeMs: filter.toMs ?? end,
      limit: 21,
      after: undefined,
    }
    const found = await selectSessionsPage(client, key, AbortSignal.timeout(20_000))
    return { ...found, rows: rowsRead }
  }

  /** An hour may be of two days, and parts are read by day. */
  const TWO_DAYS = 2 * TABLES.length * REQUESTS_A_DAY

  it.each<[string, Partial<SessionsFilter>]>([
    ['the newest', {}],
    ['those of a surface', { surfaceId: 'srf_1' }],
    ['those until another day', { toMs: end - 5 * DAY_MS }],
  ])('of %s reads only rows of the days concerned', async (_, filter) => {
    const { sessions, rows } = await page(filter)
    expect(sessions).toHaveLength(21)
    expect(rows).toBeLessThanOrEqual(TWO_DAYS)
  })

  it('of those with a replay reads beside these the ids of the sessions with replays', async () => {
    const { sessions, rows } = await page({ hasReplay: true })
    expect(sessions).toHaveLength(21)
    expect(rows).toBeLessThanOrEqual(4 * TWO_DAYS + DAYS * REQUESTS_A_DAY)
  })

  it('of a user reads the users of all identities, and only granules with the sessions of the user', async () => {
    const { sessions, rows } = await page({ user: 'user-6999' })
    expect(sessions.length).toBeGreaterThan(9)
    const identities = DAYS * REQUESTS_A_DAY
    // One look at the identities for each of the four tables; the sessions of the user are in nearly every granule here.
    expect(rows).toBeLessThanOrEqual(4 * identities + 3 * identities)
  })
})
