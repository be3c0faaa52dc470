import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { DAY_MS } from '../../../../schemas/units.ts'
import { readStack } from '../../../../shared/stacks/read-stack.ts'
import { ORIGINAL_FRAMES } from '../../../support/pages/built-app.ts'
import { until } from '../../../support/until.ts'
import { type ReleaseOwner, storeRelease } from '../../../support/workspaces/store-release.ts'
import {
  app,
  client,
  enqueueExceptions,
  listFindings,
  OWNER,
  opened,
  services,
  stores,
  throwIn,
  uploaded,
  workers,
} from './fixture.ts'

/** Stacks of one application by scenario, and the maps of its files by path (test/cases/grouping/README.md). */
interface Build {
  readonly stacks: Readonly<Record<string, string>>
  readonly maps: Readonly<Record<string, unknown>>
}

const BUILDS = join(import.meta.dirname, '../../../cases/grouping/builds')
const BUNDLERS = [...new Set(readdirSync(BUILDS).map(name => name.split('-')[0] as string))]
const ASYNC = ['orders', 'users', 'stock', 'rates']
const AS_SENT = '0'

interface StoredRow {
  readonly findingId: string
  readonly rank: string
  readonly message: string
  readonly stack: string
  readonly version: string
}

/** Returns the exceptions of a service in the order in which they arrived. */
async function rowsOf(service: string): Promise<StoredRow[]> {
  const query = `SELECT finding_id AS findingId, toString(rank) AS rank, message, stacktrace AS stack, service_version AS version
    FROM exceptions WHERE service_name = '${service}' ORDER BY received_at`
  return (await client.query({ query, format: 'JSONEachRow' })).json()
}

function untilStored(service: string, count: number): Promise<StoredRow[]> {
  return until(`${count} exceptions of ${service} are stored`, async () => {
    const rows = await rowsOf(service)
    return rows.length === count ? rows : undefined
  })
}

/** Returns every finding that a variant of the service was ever in, a list for each variant. */
async function everIn(service: string): Promise<string[][]> {
  const query = `SELECT groupUniqArrayArray(finding_ids) AS ids FROM finding_variants
    WHERE variant_id IN (SELECT variant_id FROM findings WHERE service_name = '${service}') GROUP BY variant_id`
  const rows = await (await client.query({ query, format: 'JSONEachRow' })).json<{ ids: string[] }>()
  return rows.map(({ ids }) => ids)
}

/** Starts workers that wait longer than a second: a busy machine may take that for the start of the process for maps. */
const patientWorkers = (s3 = services.s3) => workers(['traces', 'exceptions'], s3, 30_000)

/** Starts a server before the object store that accepts requests and answers none until it is opened. */
async function startGate() {
  const { hostname, port } = new URL(services.s3.endpoint)
  const waiting = new Set<Socket>()
  let isOpen = false
  const pass = (socket: Socket) => {
    const upstream = connect({ host: hostname, port: Number(port) })
    pipeline(socket, upstream, socket, () => {
      socket.destroy()
      upstream.destroy()
    })
  }
  const server = createServer(socket => {
    socket.on('error', () => {})
    if (isOpen) pass(socket)
    else waiting.add(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.push(async () => {
    for (const socket of waiting) socket.destroy()
    server.close()
  })
  const url = new URL(services.s3.endpoint)
  url.port = String((server.address() as AddressInfo).port)
  return {
    s3: { ...services.s3, endpoint: url.href },
    open() {
      isOpen = true
      for (const socket of waiting) pass(socket)
      waiting.clear()
    },
  }
}

describe.each(BUNDLERS)('two builds by %s whose maps were uploaded before', bundler => {
  it('have the same findings from their first rows on', async () => {
    const service = `shop-${bundler}`
    const found: ReadonlyMap<string, string>[] = []
    // The frames are stored later: another process symbolicates.
    patientWorkers()
    const listed = new Set<string>()
    for (const version of ['1', '2']) {
      const { stacks, maps }: Build = JSON.parse(readFileSync(join(BUILDS, `${bundler}-${version}.json`), 'utf8'))
      const files = Object.entries(maps).map(([path, map]) => {
        return { path: `${path.slice(1)}.map`, map: Buffer.from(JSON.stringify(map)), chunkUrl: `~${path}` }
      })
      await storeRelease(stores, OWNER, `${service} ${version}`, files)
      const names = Object.keys(stacks)
      const thrown = Object.values(stacks).map(stack => {
        const { type = '', message = '' } = readStack(stack).links[0] ?? {}
        return { type, message, stack }
      })
      await enqueueExceptions(thrown, { service, version: `${service} ${version}` })
      await until('the findings are listed', async () => {
        for (const { id } of await listFindings(service)) listed.add(id)
        return (await rowsOf(service)).length === Number(version) * names.length
      })
      for (const { id } of await listFindings(service)) listed.add(id)
      const rows = (await rowsOf(service)).filter(row => row.version === `${service} ${version}`)
      const scenarioOf = (row: StoredRow) =>
        names[thrown.findIndex(({ stack, message }) => stack === row.stack && message === row.message)] as string
      found.push(new Map(rows.map(row => [scenarioOf(row), row.findingId])))
    }
    const [first, second] = found
    expect(first?.size).toBeGreaterThan(20)
    expect(Object.fromEntries(second ?? [])).toEqual(Object.fromEntries(first ?? []))
    expect(new Set(ASYNC.map(scenario => first?.get(scenario))).size).toBe(ASYNC.length)
    expect(listed).toEqual(new Set(first?.values()))
    for (const ids of await everIn(service)) expect(ids).toHaveLength(1)
  })
})

describe('an exception', () => {
  it('is stored as sent while the object store answers nothing, and moves later', async () => {
    const url = `https://cdn.test/slow/${app.script}`
    const service = 'slow-store'
    await storeRelease(stores, OWNER, 'slow-1', [{ ...uploaded(), chunkUrl: url }])
    const gate = await startGate()
    workers(['traces', 'exceptions', 'symbolication'], gate.s3)
    await enqueueExceptions([{ type: 'Error', message: '', stack: await throwIn(url) }], { service, version: 'slow-1' })
    const [row] = await untilStored(service, 1)
    expect(row?.rank).toBe(AS_SENT)
    // The views have a row a moment later than the table.
    const listed = await until('it is listed', async () => (await listFindings(service)).at(0))
    expect(listed.id).toBe(row?.findingId)
    expect(listed.topFrame?.file).toBe(url)
    gate.open()
    const moved = await until('it has moved', async () => {
      const [finding, ...others] = await listFindings(service)
      return finding !== undefined && others.length === 0 && finding.id !== row?.findingId ? finding : undefined
    })
    const [original] = ORIGINAL_FRAMES
    expect(moved.topFrame).toEqual({ ...original, file: expect.stringMatching(/pricing\.ts$/) })
  })

  it('of a variant that moved before belongs to its finding from the first row of a day on', async () => {
    const url = `https://cdn.test/days/${app.script}`
    const service = 'days'
    await storeRelease(stores, OWNER, 'days-1', [{ ...uploaded(), chunkUrl: url }])
    const thrown = [{ type: 'Error', message: '', stack: await throwIn(url) }]
    const before = patientWorkers()
    await enqueueExceptions(thrown, { service, version: 'days-1' }, OWNER, Date.now() - DAY_MS)
    const [yesterday] = await untilStored(service, 1)
    expect(yesterday?.rank).not.toBe(AS_SENT)
    // The process that resolved it does not ask for it again.
    await enqueueExceptions(thrown, { service, version: 'days-1' })
    expect((await untilStored(service, 2)).at(-1)).toMatchObject({ ...yesterday })
    await before.stop()
    opened.length = 0
    // Nor does another one need the map.
    patientWorkers((await startGate()).s3)
    await enqueueExceptions(thrown, { service, version: 'days-1' })
    expect((await untilStored(service, 3)).at(-1)).toMatchObject({ ...yesterday })
    expect(await everIn(service)).toEqual([[yesterday?.findingId]])
  })

  it('waits a second at most for a hostile map, and those of other workspaces do too', async () => {
    const OTHER: ReleaseOwner = { workspaceId: 'ws_2', surfaceId: 'srf_2' }
    // A parser tries each nested arrow function in two ways. Each takes the tracer five seconds.
    const slow = { version: 3, names: ['f'], sourcesContent: [`${'f<T>(x=<T>(y)=>'.repeat(20)}0`], mappings: 'AAAAA' }
    const scripts = ['a', 'b', 'c', 'd']
    const maps = scripts.map(name => {
      const map = Buffer.from(JSON.stringify({ ...slow, sources: [`${name}.ts`] }))
      return { path: `${name}.js.map`, map, chunkUrl: `https://hostile.test/${name}.js` }
    })
    await storeRelease(stores, OWNER, 'hostile-1', maps)
    const url = `https://cdn.test/beside/${app.script}`
    await storeRelease(stores, OTHER, 'beside-1', [{ ...uploaded(), chunkUrl: url }])
    workers()
    for (const name of scripts) {
      const stack = `Error\n    at f (https://hostile.test/${name}.js:1:1)`
      await enqueueExceptions([{ type: 'Error', message: '', stack }], { service: 'hostile', version: 'hostile-1' })
    }
    const thrown = [{ type: 'Error', message: '', stack: await throwIn(url) }]
    await enqueueExceptions(thrown, { service: 'beside', version: 'beside-1' }, OTHER)
    await untilStored('hostile', scripts.length)
    await untilStored('beside', 1)
    const resolved = await client.query({
      query: `SELECT count() AS n FROM finding_frames WHERE service_version = 'hostile-1'`,
      format: 'JSONEachRow',
    })
    expect(Number((await resolved.json<{ n: string }>())[0]?.n)).toBeLessThan(scripts.length)
    await until(
      'the other workspace has its finding',
      async () => {
        const query = `SELECT max(membership).1 > 0 AS isMapped FROM finding_variants
          WHERE variant_id IN (SELECT variant_id FROM findings WHERE service_name = 'beside')`
        const [row] = await (await client.query({ query, format: 'JSONEachRow' })).json<{ isMapped: number }>()
        return row?.isMapped === 1
      },
      { deadlineMs: 30_000 },
    )
  }, 60_000)
})
