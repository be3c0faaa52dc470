import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { decodePayload, encodePayload } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
import { queueOn } from '../../support/queue-on.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const url = `${services.redisUrl}/9`
const keys = queueKeys('traces')
const script = fileURLToPath(new URL('../../support/hostile/mortal-worker.ts', import.meta.url))
let redis: Redis
let worker: ChildProcess | undefined

beforeAll(async () => {
  redis = new Redis(url)
  await redis.flushdb()
})
afterAll(async () => {
  worker?.removeAllListeners('exit').kill('SIGKILL')
  await redis.flushdb()
  redis.disconnect()
})

/** Enqueues one request as a job of its own. */
async function enqueue(body: string): Promise<void> {
  const owner = { workspaceId: 'ws_1', surfaceId: 'srf_1', attributes: '', receivedAtMs: 1_000 }
  const frame = {
    ...owner,
    contentType: 'application/json',
    contentEncoding: 'identity',
    body: Buffer.from(body),
  } as const
  const payload = encodePayload([frame])
  await redis.set(keys.payload(body), payload)
  const jobs = createJobAdder(queueOn(redis))
  await jobs.add('traces', [{ jobId: body, payload, frames: 1 }])
  await jobs.close()
}

it('a request that kills each worker that decodes it is set aside, and its neighbours are stored once', async () => {
  const neighbours = Array.from({ length: 10 }, (_, i) => `neighbour ${i}`)
  for (const body of [...neighbours.slice(0, 5), 'killer', ...neighbours.slice(5)]) await enqueue(body)
  let deaths = 0
  const start = () => {
    worker = spawn(process.execPath, [script, url], { stdio: 'ignore' }).on('exit', () => {
      deaths++
      start()
    })
  }
  start()
  await until('every payload is settled', async () => (await redis.keys(`${keys.payloadPrefix}*`)).length === 0)

  expect(deaths).toBeGreaterThanOrEqual(3)
  const stored = Object.values(await redis.hgetall('inserts')).flatMap(lines => lines.split('\n'))
  expect(stored.sort()).toEqual(neighbours)
  const [letter] = await redis.keys(`${queueKeys('dead-letters').payloadPrefix}*`)
  const [frame, ...others] = decodePayload((await redis.getBuffer(letter as string)) as Buffer)
  expect(others).toEqual([])
  expect(frame?.body.toString()).toBe('killer')
  expect(JSON.parse(frame?.attributes ?? '{}').reason).toMatch(/^killed_worker: \d+ workers ended while they had it$/)
})
