import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { ROOT } from '../../deploy/local/config.ts'
import type { LocalCredentials } from '../../deploy/local/start.ts'
import { loadSecrets } from '../../deploy/local/workspace/secrets.ts'
import { freePorts, type LocalStart, runLocalStart } from '../support/services/local-start.ts'
import { exampleExport } from '../support/workspaces/example-export.ts'

const NAMES = ['redis', 'directory', 'clickhouse', 's3', 'edge', 'api', 'workers']
const START_MS = 60_000

describe('npm start', () => {
  let localDir: string
  let ports: Record<string, string>
  let current: LocalStart
  let credentials: LocalCredentials
  let example: ReturnType<typeof exampleExport>
  let sent = 0
  let firstStartMs: number

  beforeAll(async () => {
    localDir = await mkdtemp(join(tmpdir(), 'penstock-start-'))
    ports = await freePorts()
    const startedAt = Date.now()
    current = runLocalStart(localDir, ports)
    credentials = await current.untilReady(START_MS)
    firstStartMs = Date.now() - startedAt
    example = exampleExport(await loadSecrets(localDir), Date.now())
  })
  afterAll(async () => {
    current?.signal('SIGTERM')
    await current?.exited
    await rm(localDir, { recursive: true, force: true })
  })

  it('writes credentials of the documented shape that only this user can read', async () => {
    const text = z.string().min(1)
    const url = z.url()
    const shape = z.strictObject({
      baseUrl: url,
      ingestUrl: url,
      apiUrl: url,
      adminUrls: z.strictObject({ ingest: url, workers: url, api: url }),
      publicKey: z.string().regex(/^pk_\w{38}$/),
      secretKey: z.string().regex(/^sk_\w{38}$/),
      sessionToken: z.jwt(),
      workspaceSlug: text,
      userId: text,
      surfaceId: text,
      redisUrl: url,
      directoryRedisUrl: url,
      clickhouseUrl: url,
      s3: z.strictObject({ endpoint: url, bucket: text, accessKeyId: text, secretAccessKey: text }),
    })
    expect(() => shape.parse(credentials)).not.toThrow()
    expect(credentials.baseUrl).toBe(`http://127.0.0.1:${ports.INGEST_PORT}`)
    expect((await stat(join(localDir, 'credentials.json'))).mode & 0o777).toBe(0o600)
    for (const store of [credentials.redisUrl, credentials.directoryRedisUrl, credentials.clickhouseUrl]) {
      expect(new URL(store).password).toMatch(/^[0-9a-f]{48}$/)
    }
  })

  it('shows six steps, then one block with what to do next', async () => {
    const ready = current.lines.findIndex(line => line.startsWith('Penstock is ready'))
    const before = current.lines.slice(0, ready)
    expect(before.filter(line => /^\[\d/.test(line)).map(line => line.slice(0, 5))).toEqual(
      [1, 2, 3, 4, 5, 6].map(step => `[${step}/6]`),
    )
    // Besides the steps: each process, migrations, settings, the schema, and the console if it was built.
    expect(before.length, before.join('\n')).toBeLessThan(6 + NAMES.length + 6)
    const block = current.lines.slice(ready, ready + 9).join('\n')
    for (const shown of [credentials.baseUrl, credentials.publicKey, 'npm run demo', 'npm run console:link']) {
      expect(block).toContain(shown)
    }
    expect(block).not.toContain(credentials.secretKey)
    for (const url of [credentials.baseUrl, credentials.apiUrl]) {
      const { status, headers } = await fetch(url, { redirect: 'manual' })
      expect([status, headers.get('location')]).toEqual([302, '/console/'])
    }
  })

  it('does what the README shows, when its commands are pasted one after the other', async () => {
    const [, span, recording, read] = (await runReadme(localDir, credentials.baseUrl)).slice(1)
    expect(span).toMatch(/"status":"stored".*"findings":\[\{.*the cart is empty/s)
    expect(recording).toMatch(/"status":"stored".*"eventCount":3/s)
    expect(read).toMatch(/the cart is empty.*GET \/cart/s)
  })

  it('serves the API at its own address and at the base address', async () => {
    for (const url of [credentials.baseUrl, credentials.apiUrl]) {
      const headers = { authorization: `Bearer ${credentials.sessionToken}` }
      expect((await fetch(`${url}/v3/findings`, { headers })).status).toBe(200)
    }
  })

  it('reports when it already runs in this directory, and which port another process uses', async () => {
    const again = runLocalStart(localDir, await freePorts())
    expect((await again.exited).code).toBe(1)
    expect(again.lines.join('\n')).toContain('already running')

    const elsewhere = await mkdtemp(join(tmpdir(), 'penstock-start-'))
    const collides = runLocalStart(elsewhere, { ...(await freePorts()), API_PORT: ports.API_PORT ?? '' })
    expect((await collides.exited).code).toBe(1)
    expect(collides.lines.join('\n')).toContain(`port ${ports.API_PORT} is in use`)
    expect(collides.lines.join('\n')).toContain('set API_PORT')
    await rm(elsewhere, { recursive: true })
  })

  it.each(NAMES)('brings %s back after kill -9 without losing a span', async name => {
    const before = current.pidsOf(name)
    process.kill(before.at(-1) as number, 'SIGKILL')
    await vi.waitFor(() => expect(current.pidsOf(name).length).toBeGreaterThan(before.length), {
      timeout: 20_000,
      interval: 50,
    })
    await untilAllReady(credentials)
    await sendExample()
    // All exports have the same span id, so each counts as an occurrence of one span.
    await vi.waitFor(async () => expect((await readExample()).spans[0]?.occurrenceCount).toBe(sent), {
      timeout: 20_000,
      interval: 50,
    })
  })

  it('stops on Ctrl-C within 5 s and leaves nothing running', async () => {
    const pids = NAMES.flatMap(name => current.pidsOf(name))
    expect(pids.filter(isRunning)).toHaveLength(NAMES.length)
    const signalledAt = Date.now()
    current.signal('SIGINT')
    const exit = await current.exited
    const tookMs = Date.now() - signalledAt
    process.stdout.write(`npm start stopped in ${tookMs} ms\n`)
    expect(exit).toEqual({ code: 0, signal: null })
    // On a slow machine, the first start gives the scale.
    expect(tookMs).toBeLessThan(Math.max(5_000, firstStartMs))
    expect(pids.filter(isRunning)).toEqual([])
  })

  it('starts again with the same keys and data in a few seconds', async () => {
    const startedAt = Date.now()
    current = runLocalStart(localDir, ports)
    const again = await current.untilReady(START_MS)
    const tookMs = Date.now() - startedAt
    process.stdout.write(`the second npm start was ready in ${tookMs} ms\n`)
    expect(again).toEqual(credentials)
    expect(tookMs).toBeLessThan(Math.max(10_000, 2 * firstStartMs))
    expect((await readExample()).spans.map(span => span.name)).toEqual(['GET /checkout'])
  })

  it('ends every process when the supervisor itself is killed', async () => {
    const pids = NAMES.flatMap(name => current.pidsOf(name))
    process.kill(Number(await readFile(join(localDir, 'supervisor.pid'), 'utf8')), 'SIGKILL')
    await current.exited
    await vi.waitFor(() => expect(pids.filter(isRunning)).toEqual([]), { timeout: 10_000, interval: 50 })
  })

  async function sendExample(): Promise<void> {
    const response = await fetch(`${credentials.baseUrl}/v1/traces`, {
      method: 'POST',
      headers: { 'x-service-public-key': credentials.publicKey, 'content-type': 'application/x-protobuf' },
      body: Buffer.from(example.body),
    })
    expect(response.status).toBe(200)
    sent++
  }

  async function readExample(): Promise<Trace> {
    const path = `/v3/findings/${example.findingId}/traces/${example.traceId}`
    const headers = { authorization: `Bearer ${credentials.sessionToken}` }
    const response = await fetch(credentials.baseUrl + path, { headers })
    expect(response.status).toBe(200)
    return (await response.json()) as Trace
  }
})

interface Trace {
  spans: { name: string; occurrenceCount: number }[]
}

/** Runs the commands of "Send your data" in a folder that looks like the checkout, and returns the output of each block. */
async function runReadme(localDir: string, baseUrl: string): Promise<string[]> {
  const text = await readFile(join(ROOT, 'README.md'), 'utf8')
  const section = text.slice(text.indexOf('\n## Send your data')).split('\n## ')[1] ?? ''
  const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  const folder = await mkdtemp(join(tmpdir(), 'penstock-readme-'))
  try {
    const names = (await readdir(ROOT)).filter(name => name !== '.local')
    for (const name of names) await symlink(join(ROOT, name), join(folder, name))
    await symlink(localDir, join(folder, '.local'))
    const end = '-- end of a block --'
    const script = blocks.join(`\necho '${end}'\n`).replaceAll('http://127.0.0.1:4318', baseUrl)
    const { stdout } = await promisify(execFile)('sh', ['-c', script], { cwd: folder, timeout: 60_000 })
    return stdout.split(end)
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function untilAllReady(credentials: LocalCredentials): Promise<void> {
  await vi.waitFor(
    async () => {
      for (const url of Object.values(credentials.adminUrls)) {
        expect((await fetch(`${url}/readyz`)).status, url).toBe(200)
      }
    },
    { timeout: 20_000, interval: 50 },
  )
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
