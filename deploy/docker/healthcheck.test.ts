import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createAdminServer } from '../../shared/runtime/admin-server.ts'
import { createLogger } from '../../shared/runtime/logger.ts'
import { createMetrics } from '../../shared/runtime/metrics.ts'
import type { Health } from '../../shared/runtime/process/health.ts'

/** The words of the first process of a container, as the script reads them. */
const dir = mkdtempSync(join(tmpdir(), 'penstock-healthcheck-'))
const command = join(dir, 'cmdline')
const script = readFileSync(new URL('healthcheck.sh', import.meta.url), 'utf8').replace('/proc/1/cmdline', command)
let ready: Health = true
let port: number

const server = createAdminServer({
  registry: createMetrics('test').registry,
  isLive: () => true,
  isReady: () => ready,
  logger: createLogger('test', 'fatal'),
})

beforeAll(async () => {
  port = await server.listen('127.0.0.1', 0)
})
afterAll(async () => {
  await server.close()
  rmSync(dir, { recursive: true })
})

function check(words: readonly string[], ...args: string[]): Promise<{ code: number; stdout: string }> {
  writeFileSync(command, `${words.join('\0')}\0`)
  const env = {
    PATH: process.env.PATH,
    ADMIN_BIND_HOST: '0.0.0.0',
    WORKERS_ADMIN_PORT: String(port),
    API_ADMIN_PORT: '1',
  }
  return new Promise(resolve => {
    const child = execFile('bash', ['-c', script, 'healthcheck.sh', ...args], { env }, (_, stdout) =>
      resolve({ code: child.exitCode ?? -1, stdout }),
    )
  })
}

const WORKERS = ['node', '/app/workers/main.ts', '--pools', 'traces']

it('succeeds while the process is alive, and with readyz while it is ready too', async () => {
  expect(await check(WORKERS)).toEqual({ code: 0, stdout: '' })
  expect(await check(WORKERS, 'readyz')).toEqual({ code: 0, stdout: '' })
  ready = 'redis is not connected'
  expect(await check(WORKERS)).toEqual({ code: 0, stdout: '' })
  expect(await check(WORKERS, 'readyz')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('redis is not connected\n'),
  })
})

it('fails where nothing listens, and succeeds for a command that has no port', async () => {
  expect(await check(['node', '/app/api/main.ts'])).toMatchObject({ code: 1 })
  expect(await check(['node', '/app/clickhouse/migrate/main.ts'])).toEqual({ code: 0, stdout: '' })
})
