import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectProducer } from '../../../shared/queue/redis.ts'
import { commitBody, openExpressCommits } from '../../support/express-commits.ts'
import { queuedFrames } from '../../support/queued-payloads.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { until } from '../../support/until.ts'

const keys = queueKeys('traces')
let dir: string
let server: LocalService
let redis: Redis
let edge: TestEdge
/** Public keys of the surfaces srf_a and srf_b. */
let keyOf: Record<string, string>

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-late-'))
  server = await startRedis({ dir, port: await freePort(), password: 'test', log: () => {} })
  redis = new Redis(server.url)
  const directory = createDirectory(redis)
  const surface = (id: string) => ({ workspaceId: `ws_${id}`, surfaceId: `srf_${id}` })
  keyOf = { a: await issueKey(directory, surface('a')), b: await issueKey(directory, surface('b')) }
  edge = await startEdge(server.url)
})

afterEach(async () => {
  await edge?.stop()
  redis?.disconnect()
  await server?.kill9()
  await rm(dir, { recursive: true, force: true })
})

/** Sends an export that begins with the marker and has at least this size. Its other bytes cannot be packed. */
async function send(marker: string, { id = 'a', bytes = 0 } = {}): Promise<number> {
  const content = Buffer.concat([Buffer.from(marker.padEnd(20)), randomBytes(bytes)])
  const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': keyOf[id] as string },
    body: new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(content).finish(),
  })
  await response.arrayBuffer()
  return response.status
}

/** Returns the markers of the requests that are stored, in alphabetical order. */
async function stored(): Promise<string[]> {
  const frames = await queuedFrames(redis, 'traces')
  return frames.map(({ body }) => /[a-z]+ \d+/.exec(body.toString('latin1', 0, 40))?.[0] ?? '').sort()
}

async function connections(): Promise<number> {
  return Number(/^connected_clients:(\d+)/m.exec(await redis.info('clients'))?.[1] ?? 0)
}

/** Returns the counts of the requests of srf_a for the audit. */
async function counts(): Promise<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const [field, requests] of Object.entries(await redis.hgetall(keys.arrivals))) {
    const outcome = field.split('/').at(-1) ?? ''
    sums[outcome] = (sums[outcome] ?? 0) + Number(requests)
  }
  return sums
}

it('requests that are answered 503 while Redis is stopped are not stored when it continues, and are counted as unconfirmed', async () => {
  expect(await send('before 1')).toBe(200)
  await until('it is counted', async () => (await counts()).received === 1)
  const before = await connections()
  process.kill(server.pid, 'SIGSTOP')
  await until('redis is stopped', async () =>
    / T /.test((await readFile(`/proc/${server.pid}/stat`, 'utf8')).slice(0, 60)),
  )
  const small = Array.from({ length: 20 }, (_, i) => send(`late ${i}`))
  const large = send('large 1', { bytes: 6 * MIB })
  expect(new Set(await Promise.all([...small, large]))).toEqual(new Set([503]))
  process.kill(server.pid, 'SIGCONT')
  let after = 0
  await until('an export is accepted', async () => {
    after++
    return (await send('after 1')) === 200
  })
  // Redis runs the commands of a closed connection before it drops the connection.
  await until('redis has run the late commits too', async () => (await connections()) <= before)
  expect((await stored()).filter(marker => !marker.startsWith('after'))).toEqual(['before 1'])
  const { acceptedPayloads } = await redis.hgetall(keys.flow)
  expect(Number(acceptedPayloads)).toBe((await stored()).length)
  expect(await redis.zcard(keys.pending)).toBe((await redis.keys(`${keys.payloadPrefix}*`)).length)
  await until('all are counted', async () => (await counts()).received === 22 + after)
  const { unconfirmed = 0, 'refused-503': refused = 0, ...others } = await counts()
  expect(others).toEqual({ accepted: 2, acknowledged: 2, received: 22 + after })
  expect(unconfirmed).toBeGreaterThanOrEqual(21)
  expect(unconfirmed + refused).toBe(20 + after)
})

it('requests that waited for a late commit are stored within their own time', async () => {
  const producer = connectProducer(server.url, 2_000, pino({ level: 'silent' }))
  const commits = openExpressCommits(producer, { maxCommitBytes: MIB, maxCommitFrames: 512, timeoutMs: 2_000 })
  const enqueue = async (marker: string) => {
    await commitBody(commits, marker)
    return 'confirmed'
  }
  const outcomeOf = (marker: string) => enqueue(marker).catch((error: Error) => error.message)
  try {
    await until('the queue is open', async () => (await outcomeOf('open 1')) === 'confirmed')
    await redis.call('CLIENT', 'PAUSE', '2300', 'WRITE')
    const first = outcomeOf('first 1')
    await new Promise(resolve => setTimeout(resolve, 1_000)) // half of the time of the first request
    expect(await Promise.all([first, outcomeOf('second 1')])).toEqual([
      'the queue could not confirm the write',
      'confirmed',
    ])
    expect(await stored()).toEqual(['open 1', 'second 1'])
  } finally {
    await commits.drain()
    producer.disconnect()
  }
})

it('a commit whose script Redis has lost leaves nothing but a payload that expires, and the next one is accepted', async () => {
  expect(await send('before 1')).toBe(200)
  await redis.script('FLUSH')
  expect(await send('lost 1', { bytes: MIB })).toBe(503)
  expect(await redis.zcard(keys.pending)).toBe(1)
  const lifetimes = await Promise.all((await redis.keys(`${keys.payloadPrefix}*`)).map(key => redis.pttl(key)))
  expect(lifetimes.sort((a, b) => a - b)).toEqual([-1, expect.toSatisfy((ms: number) => ms > 0 && ms <= 60_000)])
  await until('the next export is accepted', async () => (await send('after 1')) === 200)
})

describe('a body over 4 MiB', () => {
  it('does not delay a small one: Redis serves it between two pieces', async () => {
    const monitor = await redis.monitor()
    const commands: string[] = []
    let small: Promise<number> | undefined
    monitor.on('monitor', (_time: string, [name, key = '']: string[]) => {
      const command = name?.toLowerCase()
      if (command === 'setrange') small ??= send('small 1', { id: 'b' })
      if (
        command === 'setrange' ||
        command === 'rename' ||
        (command === 'psetex' && key.startsWith(keys.payloadPrefix))
      ) {
        commands.push(command)
      }
    })
    expect(await send('large 1', { bytes: 19 * MIB })).toBe(200)
    expect(await small).toBe(200)
    await until('redis has reported the last command', () => commands.includes('rename'))
    monitor.disconnect()
    expect(commands.filter(command => command === 'setrange')).toHaveLength(20)
    expect(commands.indexOf('psetex')).toBeGreaterThan(0)
    expect(commands.indexOf('psetex')).toBeLessThan(commands.lastIndexOf('setrange'))
    expect(await stored()).toEqual(['large 1', 'small 1'])
    expect(await redis.keys(keys.arriving('*'))).toEqual([])
    for (const key of await redis.keys(`${keys.payloadPrefix}*`)) expect(await redis.pttl(key)).toBe(-1)
  })

  it('is one of at most four of its surface that are written at once', async () => {
    await redis.call('CLIENT', 'PAUSE', '400', 'WRITE')
    const own = Array.from({ length: 6 }, (_, i) => send(`own ${i}`, { bytes: 5 * MIB }))
    const other = send('other 1', { id: 'b', bytes: 5 * MIB })
    const statuses = await Promise.all([...own, other])
    expect(statuses.slice(0, 6).sort()).toEqual([200, 200, 200, 200, 429, 429])
    expect(statuses[6]).toBe(200)
    expect(await stored()).toHaveLength(5)
  })
})
