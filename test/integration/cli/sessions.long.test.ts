import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { clusterSettings } from '../../support/cluster/connect.ts'
import { listObjects } from '../../support/oracles/list-objects.ts'
import { createDatabase, insertSpans, putWorkspace } from '../../support/services/api.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { at, insertRows, ownerColumns, type SessionOwner, storeChunk } from '../../support/workspaces/session-rows.ts'

const DATABASE = `cli_sessions_${process.pid}`
const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
/** Unique for this run, because other tests use the same Redis and object store. */
const RUN = randomBytes(5).toString('hex')
const WORKSPACE = { id: `ws_${RUN}1`, slug: `cli-${RUN}-1` }
const OTHER = { id: `ws_${RUN}2`, slug: `cli-${RUN}-2` }
const TABLES = [
  'spans',
  'logs',
  'exceptions',
  'session_traces',
  'session_identities',
  'session_heartbeats',
  'replay_chunks',
]

describe('penstock sessions delete', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let objects: ObjectStore
  let redis: Redis

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    redis = new Redis(services.redisUrl)
    await putWorkspace(services.redisUrl, WORKSPACE)
    await putWorkspace(services.redisUrl, OTHER)
    const surface = {
      version: 1,
      id: 'srf_3',
      workspaceId: WORKSPACE.id,
      name: 'x',
      createdAt: new Date().toISOString(),
    } as const
    await createDirectory(redis).putSurface(surface)
  })
  afterAll(async () => {
    redis?.disconnect()
    objects?.close()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  /** Stores one row in each table and one object. */
  async function fill(owner: SessionOwner): Promise<void> {
    const columns = { ...ownerColumns(owner), received_at: at(Date.now()) }
    const { workspaceId, sessionId } = owner
    await insertSpans(client, [{ workspaceId, sessionId, traceId: 'a'.repeat(32), spanId: '00000000000000a1' }])
    await insertRows(client, 'logs', [{ ...columns, timestamp: at(Date.now()), body: 'x' }])
    const finding = { variant_id: 'a'.repeat(16), finding_id: `fnd_${'a'.repeat(26)}`, source: 'log_record' }
    await insertRows(client, 'exceptions', [{ ...columns, ...finding, occurred_at_unix_nano: '1' }])
    await insertRows(client, 'session_identities', [{ ...columns, identifier: 'anna', traits: '{}' }])
    await insertRows(client, 'session_heartbeats', [columns])
    await storeChunk(client, objects, owner, { windowId: 'w', segmentId: '0', events: [{ type: 2, timestamp: 1 }] })
  }

  async function rowsOf(owner: SessionOwner): Promise<Record<string, number>> {
    const counts = TABLES.map(async table => {
      const result = await client.query({
        query: `SELECT count() AS n FROM ${table} WHERE workspace_id = {w: String} AND session_id = {s: String}`,
        query_params: { w: owner.workspaceId, s: owner.sessionId },
        format: 'JSONEachRow',
      })
      const [row] = await result.json<{ n: string }>()
      return [table, Number(row?.n)] as const
    })
    return Object.fromEntries(await Promise.all(counts))
  }

  const each = (count: number) => Object.fromEntries(TABLES.map(table => [table, count]))

  it('deletes rows and objects of the session, reports them, and finds nothing the second time', async () => {
    const session = { workspaceId: WORKSPACE.id, surfaceId: 'srf_1', sessionId: 'a/1' }
    const others = [
      { ...session, sessionId: 'a/10' },
      { ...session, sessionId: 'a' },
      { ...session, workspaceId: OTHER.id },
    ]
    for (const owner of [session, ...others]) await fill(owner)
    // An object without a row, of a surface that only the directory contains.
    await objects.put(`replays/${WORKSPACE.id}/srf_3/a%2F1/w/0.jsonl.gz`, Buffer.from('12345'), { contentType: 'x' })

    const first = await run(['--workspace', WORKSPACE.slug, '--session', 'a/1', '--json'])
    expect(first).toMatchObject({ code: 0, stderr: '' })
    const told = JSON.parse(first.stdout)
    expect(told).toMatchObject({ workspaceId: WORKSPACE.id, sessionId: 'a/1', rows: each(1), objects: 2 })
    expect(told.objectBytes).toBeGreaterThan(5)
    expect(await rowsOf(session)).toEqual(each(0))
    for (const other of others) expect(await rowsOf(other), other.sessionId).toEqual(each(1))
    const left = [
      ...(await listObjects(services.s3, `replays/${WORKSPACE.id}/`)),
      ...(await listObjects(services.s3, `replays/${OTHER.id}/`)),
    ]
    expect(left.map(({ key }) => key)).toEqual([
      `replays/${WORKSPACE.id}/srf_1/a%2F10/w/0.jsonl.gz`,
      `replays/${WORKSPACE.id}/srf_1/a/w/0.jsonl.gz`,
      `replays/${OTHER.id}/srf_1/a%2F1/w/0.jsonl.gz`,
    ])

    const second = await run(['--workspace', WORKSPACE.id, '--session', 'a/1'])
    expect(second).toEqual({ code: 0, stdout: `session "a/1" of ${WORKSPACE.slug}: nothing was stored\n`, stderr: '' })
  })

  it('counts as many rows of another hour again', async () => {
    const session = { workspaceId: WORKSPACE.id, sessionId: 'again' }
    // Repetitions within a day are recognized.
    for (const hour of [3, 15]) {
      const receivedAt = (Math.floor(Date.now() / DAY_MS) - 1) * DAY_MS + hour * HOUR_MS
      const span = { traceId: 'b'.repeat(32), spanId: '00000000000000b1', receivedAt }
      await insertSpans(client, [{ ...session, surfaceId: 'srf_1', ...span }])
      const deleted = await run(['--workspace', WORKSPACE.slug, '--session', session.sessionId])
      expect(deleted).toMatchObject({ code: 0 })
    }
    const query = `SELECT sum(rows) AS n, uniqExact(received_hour) AS hours FROM deleted_rows
                   WHERE table_name = 'spans' AND received_hour < today()`
    expect(await (await client.query({ query, format: 'JSONEachRow' })).json()).toEqual([{ n: 2, hours: 2 }])
  })

  it('deletes the chunks of an id that begins with ~, and none of a session whose long id has this hash', async () => {
    const put = (part: string) =>
      objects.put(`replays/${WORKSPACE.id}/srf_3/${part}/w/0.jsonl.gz`, Buffer.from('1'), { contentType: 'x' })
    const hash = `~${'a'.repeat(64)}`
    for (const part of ['%7Eid', hash]) await put(part)
    const deleted = async (session: string) => {
      const { stdout } = await run(['--workspace', WORKSPACE.id, '--session', session, '--json'])
      return JSON.parse(stdout).objects
    }
    expect(await deleted('~id')).toBe(1)
    expect(await deleted(hash)).toBe(0)
    await objects.deleteMany([`replays/${WORKSPACE.id}/srf_3/${hash}/w/0.jsonl.gz`])
  })

  it('describes in words what it has deleted', async () => {
    await fill({ workspaceId: WORKSPACE.id, surfaceId: 'srf_2', sessionId: 'told' })
    const { code, stdout } = await run(['--workspace', WORKSPACE.id, '--session', 'told'])
    expect(code).toBe(0)
    expect(stdout).toContain(`session "told" of ${WORKSPACE.slug}: deleted`)
    for (const table of TABLES) expect(stdout).toMatch(new RegExp(`^ +1 {2}row of ${table}$`, 'm'))
    expect(stdout).toMatch(/^ +1 {2}object, \d+ bytes$/m)
  })

  it('ends with a different code for each kind of failure', async () => {
    for (const name of ['nobody', 'ws_nobody', '*']) {
      const unknown = await run(['--workspace', name, '--session', 'a'])
      expect(unknown).toEqual({ code: 3, stdout: '', stderr: `there is no workspace "${name}"\n` })
    }
    expect(await run(['--workspace', WORKSPACE.slug])).toMatchObject({ code: 2, stdout: '' })
    expect(await run(['--workspace', WORKSPACE.slug, '--session', ''])).toMatchObject({ code: 2, stdout: '' })
    expect(await run(['--session', 'a', '--workspace', 'b'], { CLICKHOUSE_URL: 'ftp://x' })).toMatchObject({ code: 2 })
    const away = await run(['--workspace', WORKSPACE.slug, '--session', 'a'], { CLICKHOUSE_URL: 'http://127.0.0.1:1' })
    expect(away).toMatchObject({ code: 1, stdout: '' })
    expect(away.stderr).toContain('the request to ClickHouse failed')
    expect((await run(['--help'])).stdout).toContain('Exit codes:')
  })

  /** Runs the command as a separate process in a directory without an installation. */
  function run(args: readonly string[], settings: Record<string, string> = {}) {
    const { s3 } = services
    const env = {
      PATH: process.env.PATH,
      REDIS_URL: services.redisUrl,
      DIRECTORY_REDIS_URL: services.redisUrl,
      CLICKHOUSE_URL: services.clickhouseUrl,
      ...clusterSettings(services.clickhouseUrl),
      CLICKHOUSE_DATABASE: DATABASE,
      ...s3Settings(s3),
      ...settings,
    }
    return new Promise<{ code: number; stdout: string; stderr: string }>(resolve => {
      const argv = [MAIN, 'sessions', 'delete', ...args]
      const child = execFile(
        process.execPath,
        argv,
        { env, cwd: tmpdir(), timeout: 50_000 },
        (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
      )
    })
  }
})
