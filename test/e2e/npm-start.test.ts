import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { LocalCredentials } from '../../deploy/local/start.ts'
import { freePorts, type LocalStart, runLocalStart } from '../support/services/local-start.ts'
import { until } from '../support/until.ts'

const NAMES = ['redis', 'directory', 'clickhouse', 's3', 'edge', 'api', 'workers']
const START_MS = 60_000

describe('npm start', () => {
  let localDir: string
  let ports: Record<string, string>
  let current: LocalStart
  let credentials: LocalCredentials
  let traceCommand: string
  let sent = 0
  let firstStartMs: number

  beforeAll(async () => {
    localDir = await mkdtemp(join(tmpdir(), 'penstock-start-'))
    ports = await freePorts()
    const startedAt = Date.now()
    current = runLocalStart(localDir, ports)
    credentials = await current.untilReady(START_MS)
    firstStartMs = Date.now() - startedAt
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

  it('prints commands that store a span and read it back as pasted', async () => {
    const [send, list, trace] = printedCommands(current)
    expect(await sh(send)).toMatch(/200\s*$/)
    sent++
    const read = JSON.parse(await sh(trace)) as Trace
    expect(read.spans.map(span => span.name)).toEqual(['GET /checkout'])
    // A batch stores its spans before their exceptions, so that a trace is there a moment before its finding is listed.
    const listed = await until('the finding is listed', async () => {
      const text = await sh(list)
      return text.includes('"id"') ? text : undefined
    })
    expect(listed).toContain('EmptyCartError')
    traceCommand = trace
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
    const [send] = printedCommands(current)
    expect(await sh(send)).toMatch(/200\s*$/)
    sent++
    // All exports have the same span id, so each counts as an occurrence of one span.
    await vi.waitFor(
      async () => expect((JSON.parse(await sh(traceCommand)) as Trace).spans[0]?.occurrenceCount).toBe(sent),
      { timeout: 20_000, interval: 50 },
    )
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
    expect(await sh(traceCommand)).toContain('GET /checkout')
  })

  it('ends every process when the supervisor itself is killed', async () => {
    const pids = NAMES.flatMap(name => current.pidsOf(name))
    process.kill(Number(await readFile(join(localDir, 'supervisor.pid'), 'utf8')), 'SIGKILL')
    await current.exited
    await vi.waitFor(() => expect(pids.filter(isRunning)).toEqual([]), { timeout: 10_000, interval: 50 })
  })
})

interface Trace {
  spans: { name: string; occurrenceCount: number }[]
}

function printedCommands(start: LocalStart): [send: string, list: string, trace: string] {
  const find = (beginning: string) => start.lines.find(line => line.startsWith(beginning)) ?? ''
  return [find('echo '), find('curl '), find('for ')]
}

async function sh(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { timeout: 30_000 })
  return stdout
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
