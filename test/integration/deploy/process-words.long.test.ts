import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { ROOT } from '../../../deploy/local/config.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { startChild } from '../../../deploy/local/processes/child-process.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { issueKey } from '../../support/services/edge.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const REDIS = `${services.redisUrl}/12`

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

interface Line {
  readonly level: number
  readonly msg: string
  readonly [field: string]: unknown
}

/** Settings with which each process starts. */
async function settings(): Promise<Record<string, string | undefined>> {
  const ports = [
    'INGEST_PORT',
    'INGEST_GRPC_PORT',
    'INGEST_ADMIN_PORT',
    'API_PORT',
    'API_ADMIN_PORT',
    'WORKERS_ADMIN_PORT',
  ]
  const free = await Promise.all(ports.map(async name => [name, String(await freePort())]))
  return {
    PATH: process.env.PATH,
    REDIS_URL: REDIS,
    DIRECTORY_REDIS_URL: REDIS,
    CLICKHOUSE_URL: services.clickhouseUrl,
    CLICKHOUSE_DATABASE: 'default',
    ...s3Settings(services.s3),
    KEY_PEPPER: 'p'.repeat(32),
    AUTH_ISSUER: 'https://login.example',
    AUTH_AUDIENCE: 'penstock',
    AUTH_JWKS_URL: 'https://login.example/jwks',
    ...Object.fromEntries(free),
  }
}

/** Starts a process, and returns the lines of its log so far. It ends with the test. */
async function start(script: string, env: Record<string, string>, args: readonly string[] = []) {
  const lines: Line[] = []
  const other: string[] = []
  const child = await startChild({
    command: process.execPath,
    args: [join(ROOT, script), ...args],
    env: { ...(await settings()), ...env },
    log: text => void (text.startsWith('{') ? lines.push(JSON.parse(text)) : other.push(text)),
  })
  closing.push(() => child.kill9())
  return { lines, other, child }
}

const says = (lines: readonly Line[], text: string | RegExp) =>
  until(
    `the log says ${text}`,
    () => lines.find(({ msg }) => (typeof text === 'string' ? msg === text : text.test(msg))),
    {
      deadlineMs: 40_000,
    },
  )

/** Runs a process until it ends by itself. */
function run(script: string, args: readonly string[], env: Record<string, string> = {}, node: readonly string[] = []) {
  return new Promise<{ code: number | null; stdout: string; stderr: string }>(resolve => {
    const options = { env: { PATH: process.env.PATH, ...env }, timeout: 60_000 }
    const child = execFile(
      process.execPath,
      [...node, join(ROOT, script), ...args],
      options,
      (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    )
  })
}

describe('arguments', () => {
  it.each([
    ['ingest/main.ts', ['--listen', 'ftp'], '--listen must be http or grpc'],
    ['ingest/main.ts', ['--port', '1'], "Unknown option '--port'"],
    ['workers/main.ts', ['--pool', 'spans'], "Unknown option '--pool'"],
    ['workers/main.ts', ['spans'], "Unexpected argument 'spans'"],
    ['workers/main.ts', ['--pools', 'spans'], '--pools names "spans", which is none of the pools'],
    ['api/main.ts', ['--help-me'], "Unknown option '--help-me'"],
    ['clickhouse/migrate/main.ts', ['--forced'], "Unknown option '--forced'"],
    ['deploy/local/bootstrap.mjs', ['start', '--port'], 'penstock: unknown argument "--port"'],
    ['deploy/local/bootstrap.mjs', ['console:link', 'now'], 'penstock: unknown argument "now"'],
  ])('are refused if %s does not know them: %j', async (script, args, fault) => {
    const { code, stdout, stderr } = await run(script, args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const [first, usage, ...rest] = stderr.trimEnd().split('\n')
    expect(first).toMatch(fault)
    expect(usage).toMatch(/^usage: /)
    expect(rest).toEqual([])
  })

  it.each([
    ['ingest/main.ts', [], /^usage: ingest \[--listen/],
    ['workers/main.ts', [], /^usage: workers \[--pools .* traces, /],
    ['api/main.ts', [], /^usage: api /],
    ['clickhouse/migrate/main.ts', [], /^usage: migrate \[--check\] \[--force\]/],
    ['deploy/local/bootstrap.mjs', ['start'], /^usage: npm run start -- \[--watch\]/],
  ])('are listed by --help of %s', async (script, args, usage) => {
    const { code, stdout, stderr } = await run(script, [...args, '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(usage)
  })
})

describe('a setting that cannot be used', () => {
  it.each(['ingest/main.ts', 'workers/main.ts', 'api/main.ts', 'clickhouse/migrate/main.ts'])(
    'is one line of the log of %s, without a stack',
    async script => {
      const { code, stdout, stderr } = await run(script, [], {
        DIRECTORY_REDIS_URL: REDIS,
        CLICKHOUSE_URL: 'nowhere',
        LOG_LEVEL: 'loud',
      })
      expect({ code, stderr }).toEqual({ code: 2, stderr: '' })
      const { level, msg, ...others } = JSON.parse(stdout)
      expect(level).toBe(60)
      expect(msg).toMatch(/^the environment is invalid: .*LOG_LEVEL must be one of .*, and is "loud"/)
      expect(Object.keys(others).sort()).toEqual(['process', 'time'])
    },
  )

  it.each([
    ['ingest/main.ts', 'INGEST_PORT'],
    ['ingest/main.ts', 'INGEST_GRPC_PORT'],
    ['ingest/main.ts', 'INGEST_ADMIN_PORT'],
    ['workers/main.ts', 'WORKERS_ADMIN_PORT'],
    ['api/main.ts', 'API_PORT'],
  ])('is named by %s if the port %s is in use', async (script, setting) => {
    const port = await freePort()
    const server = createServer()
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
    closing.push(() => new Promise(resolve => server.close(resolve)))
    const { lines, other, child } = await start(script, {
      [setting]: String(port),
      DRAIN_DELAY_MS: '60000',
      SHUTDOWN_DEADLINE_MS: '90000',
    })
    expect(await child.exited).toMatchObject({ code: 2 })
    const fatal = lines.filter(({ level }) => level === 60)
    expect(fatal.map(({ msg }) => msg)).toEqual([
      `port ${port} is in use: stop the process that uses it, or set ${setting} to another port`,
    ])
    expect(fatal[0]).not.toHaveProperty('err')
    expect(other).toEqual([])
  })
})

describe('the reason why a process is not ready', () => {
  const [host = ''] = REDIS.split('@').slice(-1)
  const WRONG = `redis://:not-the-password@${host}`

  it('is in the log of a worker with a wrong password of ClickHouse', async () => {
    const wrong = services.clickhouseUrl.replace(/:[^:@/]+@/, ':not-the-password@')
    const { lines } = await start('workers/main.ts', { CLICKHOUSE_URL: wrong }, ['--pools', 'logs'])
    const line = await says(
      lines,
      /^not ready: clickhouse refuses the user, the password or the database \(code 516\)$/,
    )
    expect(line.level).toBe(40)
    expect(JSON.stringify(lines)).not.toContain('not-the-password')
  })

  it.each([
    ['ingest/main.ts', 'REDIS_URL', 'queues'],
    ['workers/main.ts', 'REDIS_URL', 'queues'],
    ['workers/main.ts', 'DIRECTORY_REDIS_URL', 'directory'],
    ['api/main.ts', 'DIRECTORY_REDIS_URL', 'directory'],
  ])('is in the log of %s with what Redis answers to a wrong %s', async (script, setting, name) => {
    const { lines } = await start(script, { [setting]: WRONG })
    await says(lines, new RegExp(`^not ready: redis of the ${name} is not connected: WRONGPASS `))
    expect(JSON.stringify(lines)).not.toContain('not-the-password')
  })

  it.each([
    ['nothing listens', 'redis://127.0.0.1:1', /ECONNREFUSED/],
    ['the server does not speak TLS', `rediss://${host}`, /is not connected: ./],
    ['a password is missing', `redis://${host}`, /NOAUTH/],
  ])('names the cause if %s', async (_name, url, cause) => {
    const { lines } = await start('api/main.ts', { DIRECTORY_REDIS_URL: url })
    const { msg } = await says(lines, /^not ready: redis of the directory is not connected: /)
    expect(msg).toMatch(cause)
  })

  it('is followed by a line when the process is ready, and by none while nothing changes', async () => {
    const redis = new Redis(REDIS)
    await redis.flushdb()
    await issueKey(createDirectory(redis))
    redis.disconnect()
    const { lines } = await start('ingest/main.ts', {})
    await says(lines, 'ready')
    const first = lines.find(({ msg }) => msg === 'starting')
    expect(first).toMatchObject({ pid: expect.any(Number), host: expect.any(String), node: process.version })
    expect(lines.filter(({ msg }) => msg === 'ready')).toHaveLength(1)
  })
})

it('the flood of one error is one line with a count, which is complete when the process ends', async () => {
  const redis = new Redis(services.redisUrl)
  await redis.acl('SETUSER', 'worker', 'on', '>first', '~*', '&*', '+@all')
  closing.push(async () => {
    await redis.acl('DELUSER', 'worker')
    redis.disconnect()
  })
  const [host = ''] = REDIS.split('@').slice(-1)
  const database = await createTestDatabase(services.clickhouseUrl, `process_words_${process.pid}`)
  closing.push(() => database.drop())
  const access = { REDIS_URL: `redis://worker:first@${host}`, CLICKHOUSE_DATABASE: database.name }
  const { lines, child } = await start('workers/main.ts', access, ['--pools', 'traces,logs'])
  await says(lines, 'workers are running')
  await says(lines, 'ready')
  await redis.acl('SETUSER', 'worker', 'resetpass', '>second')
  const clients = String(await redis.client('LIST'))
  for (const [, id] of clients.matchAll(/^id=(\d+) .*user=worker /gm)) await redis.client('KILL', 'ID', String(id))
  await says(lines, /^not ready: redis of the queues is not connected: WRONGPASS /)
  const repeatedLine = () => lines.find(({ msg, repeated }) => msg === 'worker error' && Number(repeated) > 10)
  await until('a line counts further errors', repeatedLine, { deadlineMs: 30_000 })
  await child.stop(20_000)
  const errors = lines.filter(({ msg }) => msg === 'worker error')
  const events = errors.reduce((sum, { repeated }) => sum + 1 + Number(repeated ?? 0), 0)
  expect(errors.length).toBeLessThan(events / 5)
})

it('a start whose directory cannot be written names the setting that changes it', async () => {
  const directory = join(ROOT, 'package.json', 'data')
  const { code, stderr } = await run('deploy/local/main.ts', [], { LOCAL_DIR: directory })
  const fault = `penstock: cannot write to ${directory} (ENOTDIR): set LOCAL_DIR to a directory that you can write to\n`
  expect({ code, stderr }).toEqual({ code: 1, stderr: fault })
})

it('a command on an older Node names the one that it needs', async () => {
  const older = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } })`
  const node = ['--import', `data:text/javascript,${encodeURIComponent(older)}`]
  const { code, stderr } = await run('cli/penstock.mjs', ['workspace', 'list'], {}, node)
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('Node 22.18 or later is needed') })
})
