import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { letterId } from '../../../letters/letter-id.ts'
import { purgeLetters } from '../../../letters/purge-letters.ts'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { clusterSettings, connectDatabase } from '../../support/cluster/connect.ts'
import { connectLetters, traceFrame } from '../../support/dead-letters.ts'
import { listObjects } from '../../support/oracles/list-objects.ts'
import { putWorkspace } from '../../support/services/api.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/3`
const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const DAY = Date.UTC(2026, 10, 20)
const QUEUES: readonly QueueName[] = ['traces', 'exceptions', 'dead-letters', 'dead-letter-index', 'receipts']
const directory = await mkdtemp(join(tmpdir(), 'dead-letters-'))
const database = await createTestDatabase(services.clickhouseUrl, `cli_letters_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const letters = connectLetters(services, redisUrl, clickhouse)
let pools: TestPools | undefined
let surface: { workspaceId: string; surfaceId: string }
let slug: string

beforeAll(() => letters.redis.flushdb())

beforeEach(async () => {
  surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
  slug = surface.workspaceId.replace('_', '-')
  await putWorkspace(redisUrl, { id: surface.workspaceId, slug })
  start()
})

afterAll(async () => {
  await stop()
  await letters.close()
  await clickhouse.close()
  await database.drop()
  await rm(directory, { recursive: true })
})

function start(): void {
  pools ??= startPools(QUEUES, { ...services, redisUrl }, database.name)
}

async function stop(): Promise<void> {
  await pools?.stop()
  pools = undefined
}

interface Run {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command as a separate process, on the workspace of the test. */
function run(command: string, args: readonly string[] = [], settings: Record<string, string> = {}): Promise<Run> {
  return runWords([command, '--workspace', slug, ...args], settings)
}

function runWords(words: readonly string[], settings: Record<string, string> = {}): Promise<Run> {
  const { s3 } = services
  const env = {
    PATH: process.env.PATH,
    REDIS_URL: redisUrl,
    DIRECTORY_REDIS_URL: redisUrl,
    CLICKHOUSE_URL: services.clickhouseUrl,
    ...clusterSettings(services.clickhouseUrl),
    CLICKHOUSE_DATABASE: database.name,
    ...s3Settings(s3),
    ...settings,
  }
  return new Promise(resolve => {
    const argv = [MAIN, 'dead-letters', ...words]
    const child = execFile(process.execPath, argv, { env, cwd: directory, timeout: 60_000 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    )
  })
}

const done = (stdout: string): Run => ({ code: 0, stdout: `dead letters of ${slug}: ${stdout}\n`, stderr: '' })

interface Entry {
  readonly id: string
  readonly state: string
  readonly receivedAt: string
}

async function listed(...args: string[]): Promise<Entry[]> {
  const { code, stdout, stderr } = await run('list', ['--json', ...args])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line)]))
}

const span = (name: string) => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), name })
const exportOf = (name: string) =>
  Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span(name)] }] }] }))
const frameOf = (name: string, changes: Parameters<typeof traceFrame>[2] = {}) =>
  traceFrame(surface, exportOf(name), changes)

async function refuse(queue: QueueName, ...frames: ReturnType<typeof frameOf>[]): Promise<void> {
  await letters.refuse(queue, newId('key'), frames)
  await letters.untilDone(...QUEUES)
}

const spanNames = async () =>
  (
    await database.rows<{ name: string }>(
      `SELECT name FROM spans WHERE workspace_id = '${surface.workspaceId}' ORDER BY name`,
    )
  ).map(({ name }) => name)

it('lists letters for a person and as JSON, by time, queue, surface, reason and state', async () => {
  const other = newId('srf')
  await refuse('traces', ...[1, 2, 3].map(hour => frameOf('a', { receivedAtMs: DAY + hour * HOUR_MS })))
  await refuse('logs', frameOf('b', { receivedAtMs: DAY, surfaceId: other }))
  const table = await run('list')
  expect(table).toMatchObject({ code: 0, stderr: '' })
  const [head, ...lines] = table.stdout.trimEnd().split('\n')
  expect(head?.split(/ +/)).toEqual(['ID', 'STATE', 'QUEUE', 'REASON', 'ARRIVED', 'BYTES'])
  const all = await listed()
  expect(lines.map(line => line.split(/ +/))).toEqual(
    ['03', '02', '01', '00'].map((hour, i) => [
      all[i]?.id,
      'dead',
      hour === '00' ? 'logs' : 'traces',
      'decoder_fault',
      `2026-11-20T${hour}:00:00.000Z`,
      String(exportOf('a').length),
    ]),
  )
  expect(all[3]).toEqual({
    id: expect.stringMatching(/^dlt_/),
    state: 'dead',
    queue: 'logs',
    surfaceId: other,
    reason: 'decoder_fault',
    receivedAt: '2026-11-20T00:00:00.000Z',
    bodyBytes: exportOf('b').length,
    replays: 0,
  })
  const filters: [args: string, entries: Entry[]][] = [
    ['--from 2026-11-20T01:00:00Z --to 2026-11-20T03:00:00Z', all.slice(1, 3)],
    ['--from 2026-11-20T04:00:00+02:00 --queue traces', all.slice(0, 2)],
    ['--queue logs --reason decoder_fault --state dead', all.slice(3)],
    [`--surface ${surface.surfaceId} --limit 2`, all.slice(0, 2)],
    ['--reason bad_compression', []],
    ['--state replayed', []],
  ]
  for (const [args, entries] of filters) expect(await listed(...args.split(' ')), args).toEqual(entries)
})

it('shows a letter with its attempts, and writes its body as it was sent', async () => {
  const body = gzipSync(exportOf('a'))
  await refuse('traces', frameOf('a', { body, contentEncoding: 'gzip', receivedAtMs: DAY }), frameOf('b'))
  const [, letter] = await listed()
  const [id = '', file] = [letter?.id, join(directory, 'body.bin')]
  const { code, stdout, stderr } = await run('show', ['--id', id, '--body', file])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ id, queue: 'traces', contentType: 'application/json', contentEncoding: 'gzip', bodyBytes: body.length },
    ...{ receivedAt: '2026-11-20T00:00:00.000Z', isReplayable: true, isReplaying: false, storedRecords: 0 },
    attempts: [{ outcome: 'dead', reason: 'decoder_fault', detail: 'fixed since' }],
  })
  expect(await readFile(file)).toEqual(body)
  const [object] = await listObjects(services.s3, `dead-letters/${surface.workspaceId}/`)
  await letters.objects.deleteMany([object?.key ?? ''])
  const gone = await run('show', ['--id', id, '--body', file])
  expect(gone).toMatchObject({ code: 3, stderr: `the bytes of ${id} are gone\n` })
  expect(JSON.parse(gone.stdout)).toMatchObject({ isReplayable: false })
  expect(await run('replay', ['--id', id])).toEqual(done('0 replayed, 1 skipped (bytes_missing)'))
})

it('replays letters by filter and by id, and skips those that are stored or wait for a worker', async () => {
  await refuse('traces', frameOf('a', { receivedAtMs: DAY }), frameOf('b'), frameOf('c'))
  await refuse('symbolication', frameOf('d'))
  await stop()
  expect(await run('replay', ['--to', '2026-11-20T00:00:01Z'])).toEqual(done('1 replayed'))
  expect(await run('replay', ['--queue', 'traces', '--to', '2026-11-20T00:00:01Z'])).toEqual(
    done('0 replayed, 1 skipped (replaying)'),
  )
  const oldest = (await listed()).at(-1)
  expect(oldest).toMatchObject({ state: 'replaying', replays: 1 })
  start()
  await letters.untilDone(...QUEUES)
  const { stdout } = await run('show', ['--id', oldest?.id ?? ''])
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ isReplayable: false, isReplaying: false },
    attempts: [{ outcome: 'dead' }, { outcome: 'stored', replayedAt: expect.any(String) }],
  })
  const ids = (await listed()).map(({ id }) => id)
  const named = await run('replay', ['--json', '--id', ...ids])
  expect(named).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(named.stdout)).toEqual({ replayed: 2, skipped: { replayed: 1, not_replayable: 1 } })
  await letters.untilDone(...QUEUES)
  expect(await spanNames()).toEqual(['a', 'b', 'c'])
  expect(await listed('--state', 'replayed')).toHaveLength(3)
  expect(await run('replay', ['--all'])).toEqual(done('0 replayed, 1 skipped (not_replayable)'))
})

it('waits while the queue has no room, and counts each skipped letter once', async () => {
  const large = Array.from({ length: 400 }, (_, i) =>
    frameOf(`span ${i}`.padEnd(48_000, ' '), { receivedAtMs: DAY + i }),
  )
  await refuse('traces', ...large, frameOf('last', { surfaceId: newId('srf') }))
  await refuse('symbolication', frameOf('before', { receivedAtMs: DAY - 1 }), frameOf('after'))
  await stop()
  const ids = (await letters.list(surface.workspaceId)).map(letterId)
  const replaying = run('replay', ['--id', ...ids])
  await letters.untilQueued('traces')
  start()
  expect(await replaying).toEqual(done('401 replayed, 2 skipped (not_replayable)'))
  await letters.untilDone(...QUEUES)
  expect(await spanNames()).toHaveLength(401)
})

it('purges letters once, those that are being replayed later, and none is replayed afterwards', async () => {
  await refuse('traces', frameOf('a', { receivedAtMs: DAY }), frameOf('b'))
  const ids = (await listed()).map(({ id }) => id)
  await stop()
  expect(await run('replay', ['--to', '2026-11-20T00:00:01Z'])).toEqual(done('1 replayed'))
  expect(await run('purge', ['--all'])).toEqual(done('1 purged, 1 skipped (replaying)'))
  expect(await run('purge', ['--reason', 'decoder_fault'])).toEqual(done('0 purged, 1 skipped (replaying)'))
  start()
  await letters.untilDone(...QUEUES)
  // The replayed letter is stored, and the other one is gone.
  expect(await spanNames()).toEqual(['a'])
  expect(await listed()).toMatchObject([{ id: ids[1], state: 'replayed' }])
  const named = await run('purge', ['--json', '--id', ...ids])
  expect(named).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(named.stdout)).toEqual({ purged: 1, skipped: { not_found: 1 } })
  expect(await run('purge', ['--id', ...ids])).toEqual(done('0 purged, 2 skipped (not_found)'))
  expect(await run('replay', ['--id', ...ids])).toEqual(done('0 replayed, 2 skipped (not_found)'))
  expect(await run('replay', ['--all'])).toEqual(done('0 replayed'))
  expect(await run('show', ['--id', ids[0] ?? ''])).toEqual({
    code: 3,
    stdout: '',
    stderr: `there is no dead letter "${ids[0]}" in ${slug}\n`,
  })
  expect(await listObjects(services.s3, `dead-letters/${surface.workspaceId}/`)).toEqual([])
  await letters.untilDone(...QUEUES)
  expect(await spanNames()).toEqual(['a'])
})

it('either stores or purges each letter when both run at once', async () => {
  const frames = Array.from({ length: 40 }, (_, i) => frameOf(`span ${i}`, { receivedAtMs: DAY + i }))
  await refuse('traces', ...frames)
  const { workspaceId } = surface
  const all = await letters.list(workspaceId)
  let [replayed, purged] = [0, 0]
  const replayEach = async () => {
    for (const key of all) replayed += await letters.replay(workspaceId, [key])
  }
  const purgeInSteps = async () => {
    for (let end = all.length; end > 0; end -= 8) {
      const [keys, signal] = [all.slice(end - 8, end), AbortSignal.timeout(30_000)]
      purged += (await purgeLetters(letters.deps, workspaceId, { keys }, { limit: 8 }, signal)).purged
    }
  }
  await Promise.all([purgeInSteps(), replayEach()])
  await letters.untilDone(...QUEUES)
  expect(await spanNames()).toHaveLength(replayed)
  const left = await letters.list(workspaceId)
  expect(left.filter(({ outcome }) => outcome !== 'stored')).toEqual([])
  expect(left).toHaveLength(all.length - purged)
})

it('names the argument that is wrong, and its rule', async () => {
  const ID = '--id'
  const wrong: [words: string[], error: RegExp][] = [
    [['list'], /'--workspace <slug or id>' not specified/],
    [
      ['list', '--workspace', 'a', '--from', '5'],
      /'--from <time>' argument '5' is invalid. It must be an RFC 3339 time/,
    ],
    [['list', '--workspace', 'a', '--to', '2026-11-21'], /'--to <time>' .* It must be an RFC 3339 time/],
    [
      ['list', '--workspace', 'a', '--queue', 'none'],
      /'--queue <queue>' argument 'none' is invalid. Allowed choices are traces/,
    ],
    [['list', '--workspace', 'a', '--state', 'no'], /'--state <state>' .* Allowed choices are dead, replayed/],
    [['list', '--workspace', 'a', '--limit', '0x10'], /'--limit <count>' .* It must be a whole number from 1 to 10000/],
    [['list', '--workspace', 'a', '--reason', ''], /'--reason <reason>' .* It must not be empty/],
    [
      ['list', '--workspace', 'a', '--from', '2026-11-21T00:00:00Z', '--to', '2026-11-20T00:00:00Z'],
      /^--from must be before --to\n$/,
    ],
    [['show', '--workspace', 'a'], /'--id <id>' not specified/],
    [
      ['replay', '--workspace', 'a'],
      /^pass --id, --all, or conditions such as --queue and --reason: one of the three\n$/,
    ],
    [['purge', '--workspace', 'a'], /^pass --id, --all, or conditions/],
    [['purge', '--workspace', 'a', '--all', '--queue', 'traces'], /^pass --id, --all, or conditions/],
    [['purge', '--workspace', 'a', ID, 'dlt_x'], /^--id: "dlt_x" is not the id of a dead letter\n$/],
  ]
  for (const [words, error] of wrong)
    expect(await runWords(words), words.join(' ')).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(error),
    })
})

it('names the workspace that does not exist, and the store that cannot be reached', async () => {
  for (const command of ['list', 'replay', 'purge']) {
    const all = command === 'list' ? [] : ['--all']
    const unknown = await runWords([command, '--workspace', 'unknown', ...all])
    expect(unknown).toEqual({ code: 3, stdout: '', stderr: 'there is no workspace "unknown"\n' })
    expect(await run(command, all, { CLICKHOUSE_URL: 'http://127.0.0.1:1' })).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('ClickHouse'),
    })
  }
})
