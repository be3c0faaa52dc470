import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../../deploy/local/config.ts'
import type { LocalCredentials } from '../../deploy/local/start.ts'
import { MANIFEST } from '../../deploy/release/manifest.ts'
import { freePorts } from '../support/services/local-start.ts'
import { until } from '../support/until.ts'

const INSTALL_MS = 600_000
const TRACE_ID = '5b8efff798038103d269b633813fc60c'
const run = promisify(execFile)

describe('a package that is installed in an empty folder', () => {
  let folder: string
  let env: NodeJS.ProcessEnv
  const penstock = (...args: string[]) => run('npx', ['penstock', ...args], { cwd: folder, env, timeout: 60_000 })

  beforeAll(async () => {
    const dir = await mkdtemp(join(tmpdir(), 'penstock-package-'))
    folder = join(dir, 'empty')
    await mkdir(folder)
    const { LOCAL_DIR: _, REDIS_URL: __, DIRECTORY_REDIS_URL: ___, ...inherited } = process.env
    env = { ...inherited, ...(await freePorts()) }
    await run('npm', ['pack', '--silent', '--pack-destination', dir], { cwd: ROOT, timeout: INSTALL_MS })
    const tarball = join(dir, `penstock-${MANIFEST.version}.tgz`)
    const quiet = ['--prefer-offline', '--no-audit', '--no-fund']
    await run('npm', ['install', ...quiet, tarball], { cwd: folder, env, timeout: INSTALL_MS })
  }, 2 * INSTALL_MS)
  afterAll(() => rm(join(folder, '..'), { recursive: true, force: true }))

  it('has no TypeScript, no test and no file of development', async () => {
    const files = await readdir(join(folder, 'node_modules/penstock'), { recursive: true })
    expect(files.filter(file => /\.tsx?$|\.test\.|^(test|bench|docs|\.github)\b/.test(file))).toEqual([])
    expect(files).toContain('build/console/dist/index.html')
  })

  it('is the command line, of the version that it states', async () => {
    expect((await penstock('--version')).stdout).toBe(`${MANIFEST.version}\n`)
    expect((await penstock('start', '--version')).stdout).toBe(`${MANIFEST.version}\n`)
    // After the name of a command, --version is that of a release.
    const upload = penstock('sourcemaps', 'upload', 'absent', '--version', '1.4.2')
    await expect(upload).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('absent is not a directory'),
    })
  })

  it('names what a start needs where local servers were left out', async () => {
    const server = join(folder, 'node_modules/miniflare')
    await rename(server, `${server}-away`)
    await expect(penstock('start')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/needs miniflare, .*: run "npm install --include=optional", or set S3_ENDPOINT/),
    })
    await rename(`${server}-away`, server)
  })

  it('stores a span and reads it back, with its data in the folder', { timeout: 240_000 }, async () => {
    const started = spawn('npx', ['penstock', 'start'], { cwd: folder, env, detached: true })
    let output = ''
    for (const stream of [started.stdout, started.stderr]) stream.on('data', data => (output += data))
    const exited = new Promise(resolve => started.once('close', resolve))
    // As Ctrl-C in a terminal, which every process of the command gets.
    const interrupt = () => process.kill(-Number(started.pid), 'SIGINT')
    try {
      const file = join(folder, '.local/credentials.json')
      await until('it is ready', () => existsSync(file) || started.exitCode !== null, { deadlineMs: 120_000 })
      const credentials: LocalCredentials = JSON.parse(await readFile(file, 'utf8'))
      await storeSpan(credentials)
      const read = () => penstock('trace', TRACE_ID, '--json').catch(() => undefined)
      expect((await until('the trace is stored', read, { everyMs: 500 })).stdout).toContain('GET /cart')
      expect((await fetch(`${credentials.baseUrl}/console/`)).status).toBe(200)
      const link = (await penstock('console:link')).stdout.trim()
      const { origin, pathname, searchParams } = new URL(link)
      const opened = await fetch(origin + pathname, { method: 'POST', body: searchParams })
      expect(await opened.json()).toMatchObject({ location: `${credentials.baseUrl}/console/` })
      for (const url of Object.values(credentials.adminUrls)) {
        expect(await (await fetch(`${url}/readyz`)).text()).toMatch(/^ok\nversion \S+, commit [0-9a-f]{40}(-dirty)?\n$/)
      }
      interrupt()
      await exited
      expect(existsSync(join(folder, '.local/supervisor.pid'))).toBe(false)
    } catch (error) {
      if (started.exitCode === null && started.signalCode === null) interrupt()
      throw new Error(`it printed:\n${output}`, { cause: error })
    }
  })
})

async function storeSpan({ baseUrl, publicKey }: LocalCredentials): Promise<void> {
  const startTimeUnixNano = `${BigInt(Date.now()) * 1_000_000n}`
  const span = { traceId: TRACE_ID, spanId: 'eee19b7ec3c1b174', name: 'GET /cart', kind: 2, startTimeUnixNano }
  const spans = [{ ...span, endTimeUnixNano: startTimeUnixNano }]
  const response = await fetch(`${baseUrl}/v1/traces`, {
    method: 'POST',
    headers: { 'x-service-public-key': publicKey, 'content-type': 'application/json' },
    body: JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }),
  })
  expect(response.status).toBe(200)
}
