import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { findingsPageSchema, findingTracesPageSchema } from '../../../schemas/http/findings/schemas.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import {
  createDatabase,
  insertExceptions,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
  variantOf,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const DATABASE = `findings_pages_${process.pid}`

/** Service name of one list of findings, so that the lists of different tests stay apart. */
function idsOf(list: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const number = String(i).replaceAll(/\d/g, digit => 'abcdefghij'[Number(digit)] ?? '')
    return `fnd_${list}${number.padStart(26 - list.length, 'z')}`
  })
}
const traceId = (number: number) => number.toString(16).padStart(32, '0')

describe('lists of findings', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let api: TestApi
  const tokens = new Map<string, string>()

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    for (const name of ['busy', 'slow', 'late', 'settled', 'traces', 'filters', 'cursors', 'search']) {
      await putWorkspace(services.redisUrl, { id: `ws_${name}`, slug: name })
      tokens.set(name, await signToken({ org: name }))
    }
    api = await startApi(services, DATABASE)
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  describe('while data arrives', () => {
    it('show every existing finding exactly once, however many occurrences arrive meanwhile', async () => {
      const ids = idsOf('busy', 60)
      await insert('busy', ids)
      let [walks, inserts] = [0, 0]
      const random = (below: number) => Math.floor(Math.random() * below)
      const write = async () => {
        while (walks < 3) {
          inserts++
          // Some are old, some are new, and some were received before rows that are already stored.
          const some = Array.from({ length: 1 + random(20) }, () => ids[random(ids.length)] as string)
          await insert('busy', [...some, ...idsOf(`new${'abcdef'[walks]}`, inserts % 9)], Date.now() - random(5_000))
        }
      }
      const walk = async () => {
        for (; walks < 3; walks++) {
          const before = new Set(await storedIds('busy'))
          const seen = (await follow('busy', '/v3/findings?limit=7')).flat()
          expect(new Set(seen).size).toBe(seen.length)
          expect([...before].filter(id => !seen.includes(id))).toEqual([])
        }
      }
      await Promise.all([walk().finally(() => (walks = 3)), write(), write()])
      expect(inserts).toBeGreaterThan(10)
    })

    it('keep a finding whose next occurrence was being stored while the first page was read', async () => {
      const ids = idsOf('slow', 6)
      for (const id of ids) await insert('slow', [id])
      // The insert begins before the first page and becomes visible after it, because every row takes a while.
      const [first = '', second = ''] = ids
      const slow = client.command({
        query: `INSERT INTO exceptions (workspace_id, received_at, finding_id, variant_id, occurred_at_unix_nano, type)
                SELECT 'ws_slow', now64(3), if(number = 0, '${first}', '${second}') AS finding_id, sipHash128(finding_id), 1, 'Slow'
                FROM numbers(2) WHERE sleepEachRow(0.75) = 0 SETTINGS max_block_size = 1`,
        clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
      })
      await until('the insert has begun', async () =>
        (await select<{ n: string }>(`SELECT count() AS n FROM system.processes WHERE query LIKE '%''Slow''%'`)).some(
          ({ n }) => Number(n) > 1,
        ),
      )
      await insert('slow', [ids[2] as string])
      const page = await read('slow', '/v3/findings?limit=2')
      await slow
      const rest = await follow('slow', `/v3/findings?limit=2&cursor=${page.nextCursor}`)
      expect([page.ids, ...rest]).toEqual([
        [ids[2], ids[5]],
        [ids[4], ids[3]],
        [second, first],
      ])
      expect((await read('slow', '/v3/findings?limit=2')).ids.sort()).not.toEqual([ids[2], ids[5]].sort())
    })

    it('keep a finding when an occurrence is stored that was received long before', async () => {
      const ids = idsOf('late', 4)
      const hourAgo = Date.now() - HOUR_MS
      for (const [i, id] of ids.entries()) await insert('late', [id], hourAgo + i)
      const page = await read('late', '/v3/findings?limit=2')
      // A worker that was down for an hour stores occurrences received before and after the findings of the second page.
      await insert('late', [ids[0] as string], hourAgo + 2)
      await insert('late', [ids[1] as string], Date.now() - 1)
      const rest = await follow('late', `/v3/findings?limit=2&cursor=${page.nextCursor}`)
      expect([page.ids, ...rest].flat()).toEqual([...ids].reverse())
      expect((await read('late', '/v3/findings?limit=4')).ids).toEqual([ids[1], ids[0], ids[3], ids[2]])
    })

    it('remember the position of a finding whose earlier occurrences were stored days, hours and minutes before', async () => {
      const ids = idsOf('settled', 6)
      const agesMs = [2 * DAY_MS, DAY_MS, 3 * HOUR_MS, HOUR_MS, 30 * MINUTE_MS, 20 * MINUTE_MS]
      const now = Date.now()
      for (const [i, id] of ids.entries()) await insertStored('settled', id, now - (agesMs[i] ?? 0))
      const page = await read('settled', '/v3/findings?limit=1')
      expect(page.ids).toEqual([ids[5]])
      await insert('settled', ids)
      await insert('settled', idsOf('settlednew', 3))
      const rest = await follow('settled', `/v3/findings?limit=2&cursor=${page.nextCursor}`)
      expect(rest.flat()).toEqual([ids[4], ids[3], ids[2], ids[1], ids[0]])
    })

    it('also page through the traces of a finding', async () => {
      const [id = ''] = idsOf('traces', 1)
      const occurIn = (numbers: number[]) =>
        insertExceptions(
          client,
          numbers.map(number => ({ workspaceId: 'ws_traces', findingId: id, traceId: traceId(number) })),
        )
      for (let number = 1; number <= 9; number++) await occurIn([number])
      const seen: string[] = []
      let path = `/v3/findings/${id}/traces?limit=2`
      for (let page = 0; page < 5; page++) {
        const { traces, nextCursor } = findingTracesPageSchema.parse((await ask('traces', path)).body)
        seen.push(...traces.map(trace => trace.id))
        // The finding occurs again in traces that were shown, in traces that were not, and in a new one.
        await occurIn([1, 2, 5, 9, 100 + page])
        path = `/v3/findings/${id}/traces?limit=2&cursor=${nextCursor}`
        expect(nextCursor === null).toBe(page === 4)
      }
      expect(seen).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1].map(traceId))
    })
  })

  describe('filters', () => {
    const ids = idsOf('filters', 8)
    const [web = '', worker = '', old = '', edge = '', long = ''] = ids
    const day = Math.floor(Date.now() / DAY_MS) * DAY_MS - 3 * DAY_MS

    beforeAll(async () => {
      const at = { workspaceId: 'ws_filters', traceId: traceId(1) }
      await insertExceptions(client, [
        { ...at, findingId: web, surfaceId: 'srf_web', serviceName: 'web', receivedAt: day + 10 * HOUR_MS },
        { ...at, findingId: worker, surfaceId: 'srf_web', serviceName: '', receivedAt: day + 10 * HOUR_MS + 1 },
        { ...at, findingId: old, surfaceId: 'srf_api', serviceName: 'web', receivedAt: day - 5 * DAY_MS },
        {
          ...at,
          findingId: edge,
          surfaceId: 'srf_api',
          serviceName: "o'neil",
          receivedAt: day + 12 * HOUR_MS + 150_001,
        },
        ...[0, 1, 2, 3].map(i => ({
          ...at,
          findingId: long,
          surfaceId: 'srf_x',
          receivedAt: day + i * DAY_MS - HOUR_MS,
        })),
      ])
    })

    const surface = (name: string) => `surface=${name}`
    const time = (name: string, ms: number) => `${name}=${encodeURIComponent(new Date(ms).toISOString())}`
    const edgeMs = day + 12 * HOUR_MS + 150_001

    it.each<[string, string, string[]]>([
      ['a surface', surface('srf_web'), [worker, web]],
      ['a service', 'service=web', [web, old]],
      ['no service', 'service=', [worker]],
      ['a service with a quote', `service=${encodeURIComponent("o'neil")}`, [edge]],
      ['a surface and a service', `${surface('srf_web')}&service=web`, [web]],
      ['one that nothing has', surface('srf_none'), []],
      ['a time from which on', time('from', edgeMs), [long, edge]],
      ['a time before which', time('to', day - 2 * HOUR_MS), [old]],
      ['a time after it', time('from', edgeMs + 1), [long]],
      ['the millisecond', `${time('from', edgeMs)}&${time('to', edgeMs + 1)}`, [edge]],
      ['the millisecond before', `${time('from', edgeMs - 1)}&${time('to', edgeMs)}`, []],
      ['its five minutes', `${time('from', edgeMs - 150_001)}&${time('to', edgeMs + 149_999)}`, [edge]],
      ['the end of one bucket', `${time('from', edgeMs - 300_000)}&${time('to', edgeMs)}`, []],
      ['across buckets', `${time('from', edgeMs - 400_000)}&${time('to', edgeMs + 1)}`, [edge]],
      ['its day', `${time('from', day)}&${time('to', day + DAY_MS)}`, [long, edge, worker, web]],
      ['its hours', `${time('from', day + HOUR_MS)}&${time('to', day + 11 * HOUR_MS)}`, [worker, web]],
      ['days and parts of them', `${time('from', day - 5 * DAY_MS + 1)}&${time('to', edgeMs)}`, [long, worker, web]],
      ['all of time', 'from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z', [long, edge, worker, web, old]],
      [
        'an offset',
        `from=${encodeURIComponent(new Date(edgeMs + 2 * HOUR_MS).toISOString().replace('Z', '+02:00'))}`,
        [long, edge],
      ],
    ])('select by %s', async (_, query, found) => {
      expect((await read('filters', `/v3/findings?${query}`)).ids).toEqual(found)
      expect((await follow('filters', `/v3/findings?limit=1&${query}`)).flat()).toEqual(found)
    })

    it.each<[string, string]>([
      ['from=yesterday', 'from must be an RFC 3339 time, such as 2026-11-21T10:00:00Z'],
      ['to=2026-11-21', 'to must be an RFC 3339 time, such as 2026-11-21T10:00:00Z'],
      ['to=2026-11-21T10:00:00', 'to must be an RFC 3339 time, such as 2026-11-21T10:00:00Z'],
      ['from=2026-11-21T10:00:00Z&to=2026-11-21T10:00:00Z', 'from must be before "to"'],
      ['q=', 'q must not be empty'],
      [`q=${'x'.repeat(201)}`, 'q must have at most 200 characters'],
      ['surface=', 'surface must not be empty'],
      [`service=${'x'.repeat(1_025)}`, 'service must have at most 1024 characters'],
    ])('refuse %s', async (query, message) => {
      const problem = { code: 'REQUEST_INVALID', message, service: 'api-findings' }
      expect(await ask('filters', `/v3/findings?${query}`)).toEqual({ status: 400, body: problem })
    })
  })

  describe('a search', () => {
    const ids = idsOf('search', 5)
    const [first = '', second = ''] = ids

    beforeAll(async () => {
      const texts = [
        ['TypeError', "Cannot read 100% of 'x'"],
        ['ÄrgerError', 'zu spät_gekommen \\d'],
        ['A', 'b'],
        ['Long', `${'0123456789'.repeat(99)} within ${'x'.repeat(1_000)} beyond`],
      ]
      for (const [i, [type = '', message = '']] of texts.entries()) {
        await insertExceptions(client, [
          { workspaceId: 'ws_search', findingId: ids[i] ?? '', traceId: traceId(1), type, message },
        ])
      }
    })

    it.each<[string, number[]]>([
      ['typeerror', [0]],
      ['CANNOT READ', [0]],
      ['100%', [0]],
      ["'x'", [0]],
      ['%', [0]],
      ['_', [1]],
      ['\\d', [1]],
      ['ärger', [1]],
      ['SPÄT', [1]],
      ['ab', []],
      ['with', [3]],
      ['beyond', []],
      ["' OR 1=1 --", []],
      ['{text:String}', []],
      ['r', [1, 0]],
    ])('for %s', async (text, found) => {
      const { ids: seen } = await read('search', `/v3/findings?q=${encodeURIComponent(text)}`)
      expect(seen).toEqual(found.map(i => ids[i]))
    })

    it('looks through the latest occurrence of each stack', async () => {
      const page = await read('search', '/v3/findings?q=r&limit=1')
      expect(page.ids).toEqual([second])
      const other = { workspaceId: 'ws_search', findingId: first, traceId: traceId(2), type: 'X', message: 'Y' }
      await insertExceptions(client, [other])
      expect(await follow('search', `/v3/findings?q=r&limit=1&cursor=${page.nextCursor}`)).toEqual([[first]])
      expect((await read('search', '/v3/findings?q=r')).ids).toEqual([first, second])
      await insertExceptions(client, [{ ...other, variantId: variantOf({ findingId: first, type: 'TypeError' }) }])
      expect((await read('search', '/v3/findings?q=r')).ids).toEqual([second])
    })
  })

  it('accept a cursor only with its own filters, workspace and list, and for one day', async () => {
    await insert('cursors', idsOf('cursors', 3))
    const { nextCursor } = await read('cursors', '/v3/findings?limit=1&surface=srf_1')
    const status = async (path: string, org = 'cursors') => (await ask(org, path)).status
    const cursor = `cursor=${nextCursor}`
    expect(await status(`/v3/findings?limit=2&surface=srf_1&${cursor}`)).toBe(200)
    expect(await ask('cursors', `/v3/findings?limit=1&${cursor}`)).toMatchObject({
      status: 400,
      body: { code: 'REQUEST_INVALID', message: 'cursor is for a list with other filters: start again without it' },
    })
    for (const other of ['surface=srf_2', 'surface=srf_1&q=x', 'surface=srf_1&from=2026-01-01T00:00:00Z']) {
      expect(await status(`/v3/findings?${other}&${cursor}`)).toBe(400)
    }
    expect(await status(`/v3/findings?surface=srf_1&${cursor}`, 'busy')).toBe(400)
    expect(await status(`/v3/findings/${idsOf('cursors', 1)[0]}/traces?${cursor}`)).toBe(400)
    const parts = JSON.parse(Buffer.from(nextCursor ?? '', 'base64url').toString()) as [
      string,
      string,
      string,
      string,
      number[],
    ]
    parts[4][0] = Date.now() - 25 * HOUR_MS
    const old = Buffer.from(JSON.stringify(parts)).toString('base64url')
    expect(await ask('cursors', `/v3/findings?surface=srf_1&cursor=${old}`)).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('older than a day') },
    })
  })

  async function insert(list: string, findingIds: readonly string[], receivedAt = Date.now()): Promise<void> {
    const rows = findingIds.map((findingId, i) => ({ findingId, receivedAt: receivedAt + (i % 3) }))
    await insertExceptions(
      client,
      rows.map(row => ({ ...row, workspaceId: `ws_${list}`, traceId: traceId(1) })),
    )
  }

  /** Stores occurrences as if they had been stored when they were received. */
  async function insertStored(list: string, findingId: string, atMs: number): Promise<void> {
    await client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, stored_at, finding_id, variant_id, type)
              SELECT 'ws_${list}', 'srf_1', fromUnixTimestamp64Milli(${atMs}), fromUnixTimestamp64Milli(${atMs}),
                      '${findingId}', sipHash128('${findingId}'), 'TypeError'`,
      clickhouse_settings: { async_insert: 0 },
    })
  }

  async function storedIds(list: string): Promise<string[]> {
    const rows = await select<{ id: string }>(
      `SELECT DISTINCT finding_id AS id FROM exceptions WHERE workspace_id = 'ws_${list}'`,
    )
    return rows.map(({ id }) => id)
  }

  async function select<T>(query: string): Promise<T[]> {
    return (await client.query({ query, format: 'JSONEachRow' })).json<T>()
  }

  /** Returns the ids of this page and of every page after it. */
  async function follow(org: string, path: string): Promise<string[][]> {
    const pages: string[][] = []
    for (let next: string | null = path; next !== null; ) {
      const { ids, nextCursor } = await read(org, next)
      if (ids.length > 0) pages.push(ids)
      next = nextCursor && `${path.replace(/&?cursor=[^&]*/, '')}&cursor=${nextCursor}`
    }
    return pages
  }

  async function read(org: string, path: string): Promise<{ ids: string[]; nextCursor: string | null }> {
    const { status, body } = await ask(org, path)
    expect({ status, body }).toMatchObject({ status: 200 })
    const { findings, nextCursor } = findingsPageSchema.parse(body)
    return { ids: findings.map(({ id }) => id), nextCursor }
  }

  async function ask(org: string, path: string) {
    const response = await fetch(api.baseUrl + path, { headers: { authorization: `Bearer ${tokens.get(org)}` } })
    return { status: response.status, body: (await response.json()) as unknown }
  }
})
