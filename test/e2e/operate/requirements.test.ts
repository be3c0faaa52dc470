import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ROOT } from '../../../deploy/local/config.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { ingestConfigSchema } from '../../../ingest/config.ts'
import { CLICKHOUSE_SHARDS_MAX, httpSettings, migrationSettings } from '../../../shared/runtime/config.ts'
import { type OperatePage, openPage } from '../../support/operate/page.ts'
import { openEdge } from '../../support/services/edge.ts'
import { SERVER_PASSWORD } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

/** Settings of the table that are wrong in another way, and what a process that is not ready states. */
const WRONG: Readonly<Record<string, string>> = {
  appendonly: 'no',
  appendfsync: 'everysec',
  'no-appendfsync-on-rewrite': 'yes',
  'maxmemory-policy': 'allkeys-lru',
  maxmemory: '0',
}

let dir: string
let page: OperatePage
let text: string
let server: LocalService
let redis: Redis

beforeAll(async () => {
  text = await readFile(join(ROOT, 'docs/operate/requirements.md'), 'utf8')
  page = await openPage('requirements.md', {})
  dir = await mkdtemp(join(tmpdir(), 'penstock-requirements-'))
  const settings = { 'auto-aof-rewrite-min-size': '2gb', ...tabled('Redis') }
  server = await startRedis({ dir, port: await freePort(), password: SERVER_PASSWORD, log: () => {}, settings })
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis?.disconnect()
  await server?.kill9()
  await rm(dir, { recursive: true, force: true })
})

/** Returns the rows of the tables below a heading, without the marks of code. */
function rowsOf(heading: string): string[][] {
  const section = text.split(/^#+ /m).find(part => part.startsWith(`${heading}\n`)) ?? ''
  const rows = section.split('\n').filter(line => line.startsWith('|') && !/^\|[ -]*---/.test(line))
  return rows.map(row =>
    row
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim().replaceAll('`', '')),
  )
}

/** Returns the settings of Redis whose values the table states exactly. */
function tabled(heading: string): Record<string, string> {
  const exact = rowsOf(heading).filter(
    ([name = '', value = '']) => /^[a-z-]+$/.test(name) && /^(yes|no|always|noeviction|"")$/.test(value),
  )
  return Object.fromEntries(exact.map(([name = '', value = '']) => [name, value.replaceAll('"', '')]))
}

describe('a Redis with the settings of the page', () => {
  it('keeps what it confirms, and an edge names each setting that is not as the page states', async () => {
    expect(Object.keys(tabled('Redis'))).toEqual(
      expect.arrayContaining(Object.keys(WRONG).filter(name => name !== 'maxmemory')),
    )
    const edge = await openEdge(server.url)
    try {
      await until('the edge is ready', () => edge.isReady() === true)
      for (const [name, wrong] of Object.entries(WRONG)) {
        const [, right = ''] = (await redis.config('GET', name)) as string[]
        await redis.config('SET', name, wrong)
        const checked = await openEdge(server.url)
        await until(`${name} is named`, () => String(checked.isReady()).includes(name))
        await checked.stop()
        await redis.config('SET', name, right)
      }
    } finally {
      await edge.stop()
    }
  })

  it('has the version that the page asks for', async () => {
    const [, least = ''] = rowsOf('Versions').find(([what]) => what === 'Redis, both') ?? []
    const version = /redis_version:(\d+)\.(\d+)/.exec(await redis.info('server')) ?? []
    expect(Number(version[1])).toBeGreaterThanOrEqual(Number(least.split('.')[0]))
    expect(await redis.eval(`#!lua flags=allow-oom\nreturn 7`, 0)).toBe(7)
  })
})

describe('the figures of the page are those of the code', () => {
  const settings = z.object({ ...httpSettings, ...migrationSettings }).parse({})
  const edge = () => ingestConfigSchema.shape

  it('of settings', async () => {
    expect(text).toContain(`\`MAX_CONNECTIONS\` (${settings.MAX_CONNECTIONS.toLocaleString('en')})`)
    expect(text).toContain(`${edge().REDIS_MAX_MEMORY_SHARE.parse(undefined) * 100} % of \`maxmemory\``)
    expect(text).toContain(`at most ${CLICKHOUSE_SHARDS_MAX};`)
    const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } }
    const [, node = ''] = rowsOf('Versions').find(([what]) => what === 'Node') ?? []
    const [first, second] = manifest.engines.node.split(' || ').map(range => range.replace('^', '').replace(/\.0$/, ''))
    expect(node).toBe(`${first}, or ${second}`)
  })

  it('of the inserts a second, whose table is that of the command', async () => {
    const [header, ...rows] = rowsOf('ClickHouse').slice(rowsOf('ClickHouse').findIndex(([name]) => name === 'workers'))
    expect(header?.slice(1).map(Number.parseFloat)).toEqual([1, 2, 4])
    expect(rows.length).toBeGreaterThan(2)
    for (const [workers = '', ...values] of rows) {
      const most = Number(workers.split(' ').at(-1))
      const of = (partitions: number) =>
        settings.CLICKHOUSE_INSERTS_PER_SECOND + Math.max(0, most - 4) * Math.min(partitions, 4)
      expect(values.map(Number)).toEqual([1, 2, 4].map(of))
    }
    await page.run('ClickHouse')
    expect(page.left()).toEqual([])
  })
})
