import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { generateKey } from '../../../shared/ids/credentials.ts'
import { connectProducer } from '../../../shared/queue/redis.ts'
import { countAwakeMs } from '../../support/count-awake-ms.ts'
import { commitBody, openExpressCommits } from '../../support/express-commits.ts'
import { queuedFrames } from '../../support/queued-payloads.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { until } from '../../support/until.ts'

let dir: string
let port: number
let server: LocalService
let edge: TestEdge
let publicKey: string
let sent = 0

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-outage-'))
  port = await freePort()
  server = await start()
  const redis = new Redis(server.url)
  publicKey = await issueKey(createDirectory(redis))
  redis.disconnect()
  edge = await startEdge(server.url)
})

afterAll(async () => {
  await edge?.stop()
  await server?.kill9()
  await rm(dir, { recursive: true, force: true })
})

const start = () => startRedis({ dir, port, password: 'test', log: () => {} })

async function send(key: string, marker: string): Promise<{ status: number; code?: string; ms: number }> {
  const awakeMs = countAwakeMs()
  const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': key },
    body: new BinaryWriter().tag(1, WireType.LengthDelimited).string(marker).finish(),
  })
  const body = await response.text()
  const ms = awakeMs()
  if (response.status !== 503) return { status: response.status, ms }
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  return { status: response.status, code: JSON.parse(body).code, ms }
}

/** Sends exports with known and unknown keys without pause, and returns the markers of the acknowledged ones. */
async function sendDuring(outage: () => Promise<void>): Promise<string[]> {
  const acknowledged: string[] = []
  let over = false
  const client = async (key: string, refusal: number) => {
    while (!over) {
      const marker = `export ${sent++}`
      const answer = await send(key, marker)
      if (answer.status === 200) acknowledged.push(marker)
      else if (answer.status === 503) {
        expect(answer.code).toBe('INGEST_INFRA_UNAVAILABLE')
        expect(answer.ms).toBeLessThan(1_000)
      } else expect(answer.status).toBe(refusal)
    }
  }
  const clients = [...Array.from({ length: 8 }, () => client(publicKey, 200)), client(generateKey('public'), 401)]
  await until('exports are acknowledged', () => acknowledged.length > 50)
  await outage()
  const before = acknowledged.length
  await until('exports are acknowledged again', () => acknowledged.length > before + 50)
  over = true
  await Promise.all(clients)
  return acknowledged
}

async function expectStored(markers: string[]): Promise<void> {
  const redis = new Redis(server.url)
  const counts = new Map<string, number>()
  for (const { body } of await queuedFrames(redis, 'traces')) {
    const marker = body.subarray(2).toString()
    counts.set(marker, (counts.get(marker) ?? 0) + 1)
  }
  redis.disconnect()
  expect(markers.filter(marker => counts.get(marker) !== 1)).toEqual([])
  expect([...counts.values()].filter(count => count > 1)).toEqual([])
}

it('exports are refused with 503 within a second while Redis hangs, and acknowledged ones are stored once', async () => {
  const markers = await sendDuring(async () => {
    process.kill(server.pid, 'SIGSTOP')
    await until('a known key is refused with 503', async () => (await send(publicKey, 'probe')).status === 503)
    await until(
      'an unknown key is refused with 503',
      async () => (await send(generateKey('public'), 'probe')).status === 503,
    )
    process.kill(server.pid, 'SIGCONT')
  })
  await expectStored(markers)
  expect(await edge.metrics()).toMatch(/penstock_commit_failures_total\{[^}]*queue="traces"[^}]*\} [1-9]/)
})

it('a request that waits for a slow group commit is refused within a second', async () => {
  const redis = connectProducer(server.url, 800, pino({ level: 'silent' }))
  const commits = openExpressCommits(redis, { maxCommitBytes: MIB, maxCommitFrames: 512, timeoutMs: 800 })
  const enqueue = (body: string) => commitBody(commits, body)
  const accepted = () =>
    enqueue('opening').then(
      () => true,
      () => false,
    )
  await until('the queue is open', accepted)
  const directory = new Redis(server.url)
  await directory.call('CLIENT', 'PAUSE', '600', 'WRITE')
  directory.disconnect()
  const slow = enqueue('slow').then(() => process.kill(server.pid, 'SIGSTOP'))
  await new Promise(resolve => setImmediate(resolve)) // its group commit has begun, so the next request waits for another one
  const awakeMs = countAwakeMs()
  try {
    // The request is nearly always refused, and confirmed only if Redis was faster than the signal that stops it. Both are in time.
    const outcome = await enqueue('waiting').then(
      () => 'confirmed',
      error => error.message,
    )
    expect(outcome).toMatch(/^confirmed$|could not confirm/)
    expect(awakeMs()).toBeLessThan(1_000)
    await slow
  } finally {
    process.kill(server.pid, 'SIGCONT')
    redis.disconnect()
  }
})

it('every acknowledged export is stored once after Redis was killed and restarted', async () => {
  const markers = await sendDuring(async () => {
    await server.kill9()
    await until('the edge returns 503', async () => (await send(publicKey, 'probe')).status === 503)
    server = await start()
  })
  await expectStored(markers)
})
