import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { RETAINED_TABLES } from '../../../../clickhouse/queries/retention/retained-tables.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { createDirectory } from '../../../../shared/directory/directory.ts'
import { type ExpireDeps, expireWorkspaces } from '../../../../workers/upkeep/expire-workspaces.ts'
import { createDatabase, putWorkspace } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { at, insertRows } from '../../../support/workspaces/session-rows.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/7`
const DATABASE = `repeated_expiry_${process.pid}`
const RUN = randomBytes(5).toString('hex')
const SHORT = { id: `ws_${RUN}1`, slug: `short-${RUN}` }
const OTHER = { id: `ws_${RUN}2`, slug: `other-${RUN}` }
/** Tables whose rows are counted, with a column that differs between two rows of one request. */
const COUNTED: Readonly<Record<string, string>> = {
  spans: 'name',
  logs: 'body',
  metric_points: 'metric_name',
  exceptions: 'message',
  failures: 'message',
  session_identities: 'session_id',
  session_heartbeats: 'session_id',
  replay_chunks: 'segment_id',
  build_reports: 'release_slug',
  dead_letters: 'job_id',
}
const ARRIVED = Date.now() - 11 * DAY_MS

const redis = new Redis(redisUrl)
const directory = createDirectory(redis)
let client: ClickHouseClient

beforeAll(async () => {
  await redis.flushdb()
  client = await createDatabase(services.clickhouseUrl, DATABASE)
  for (const workspace of [SHORT, OTHER]) await putWorkspace(redisUrl, workspace)
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
  await directory.changeRetention(SHORT.id, () => Object.fromEntries(kinds.map(kind => [kind, 7])))
})
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
  redis.disconnect()
})

/** Stores a row in each counted table. All rows have arrived in the same millisecond, as those of one request. */
async function fill({ id }: { id: string }, text: string): Promise<void> {
  for (const [table, column] of Object.entries(COUNTED)) {
    const owner = { workspace_id: id, surface_id: 'srf_1', received_at: at(ARRIVED) }
    // The letters of clients' requests are those that the audit counts.
    const queue = table === 'dead_letters' ? { queue: 'traces' } : {}
    // By default it is the time of the insert.
    const storedAt = table === 'exceptions' || table === 'failures' ? { stored_at: at(ARRIVED) } : {}
    await insertRows(client, table, [{ ...owner, ...queue, ...storedAt, [column]: text }])
  }
}

const expire = (change: Partial<ExpireDeps> = {}) =>
  expireWorkspaces({
    clickhouse: client,
    directory,
    objects: { delete: async () => {} },
    installationDays: 30,
    logger: pino({ level: 'silent' }),
    now: Date.now,
    assertElected: async () => {},
    onExpired: () => {},
    ...change,
  })

async function numbers(query: string): Promise<Record<string, number>> {
  const result = await client.query({ query, format: 'JSONEachRow' })
  const rows = await result.json<{ name: string; n: string }>()
  return Object.fromEntries(rows.map(({ name, n }) => [name, Number(n)]))
}
const deletedRows = () => numbers('SELECT table_name AS name, sum(rows) AS n FROM deleted_rows GROUP BY name')
const ofEach = (n: number) => Object.fromEntries(Object.keys(COUNTED).map(table => [table, n]))

it('counts rows once when it is interrupted before they are deleted, and later rows of the same day again', async () => {
  expect(RETAINED_TABLES.filter(({ isSource }) => isSource).map(({ table }) => table)).toEqual(Object.keys(COUNTED))
  const tokens: unknown[] = []
  await fill(SHORT, 'first')
  for (const table of Object.keys(COUNTED)) {
    const interrupted = new Proxy(client, {
      get(target, name) {
        const member = Reflect.get(target, name, target)
        if (name !== 'command') return typeof member === 'function' ? member.bind(target) : member
        return async (params: Parameters<ClickHouseClient['command']>[0]) => {
          if (params.query.includes(`DELETE FROM ${table} `)) throw new Error('killed')
          const token = params.clickhouse_settings?.insert_deduplication_token
          if (params.query.includes('INSERT INTO deleted_rows')) tokens.push(token)
          return target.command(params)
        }
      },
    })
    await expect(expire({ clickhouse: interrupted }), table).rejects.toThrow('killed')
  }
  // Parts change meanwhile, and with them everything that is not in the rows themselves.
  await fill(OTHER, 'first')
  for (const table of Object.keys(COUNTED)) await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` })
  await expire()
  expect(await deletedRows()).toEqual(ofEach(1))

  // A replay restores further rows of the same requests, with the arrival that they had.
  await fill(SHORT, 'second')
  await expire()
  expect(await deletedRows()).toEqual(ofEach(2))
  // It is sent in the address of the request, so it must not grow with the number of workspaces.
  expect(tokens).not.toEqual([])
  expect(tokens.map(token => String(token).length)).toEqual(tokens.map(() => 64))
}, 120_000)

it('deletes no rows of a workspace whose retention became longer while it runs', async () => {
  await fill(SHORT, 'kept')
  let changed = false
  const assertElected = async () => {
    if (changed) return
    changed = true
    await directory.changeRetention(SHORT.id, () => ({}))
  }
  await expire({ assertElected })
  const rows = await numbers(`SELECT 'rows' AS name, count() AS n FROM spans WHERE workspace_id = '${SHORT.id}'`)
  expect(rows).toEqual({ rows: 1 })
}, 60_000)
