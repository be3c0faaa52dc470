import { Queue } from 'bullmq'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { ensureReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { openReceiptId } from '../../../shared/ids/receipt.ts'
import { newJobId, queueKeys } from '../../../shared/queue/queue.ts'
import { createQueueLoads } from '../../../shared/queue/watch/queue-loads.ts'
import { watchQueueStates } from '../../../shared/queue/watch/queue-states.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { readWaitingJobs } from '../../../workers/queue/backlog.ts'
import { runCli } from '../../support/clients/run-cli.ts'
import { traceFrame } from '../../support/dead-letters.ts'
import { connectQueueCommands } from '../../support/queue-commands.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { until } from '../../support/until.ts'

const queues = await connectQueueCommands('cli_queues', 11)
const { redis, letters, env, run, lines, rowOf, enqueue, spanNames, start, stop, untilDone } = queues
const keys = queueKeys('traces')

beforeEach(() => queues.reset())
afterEach(stop)
afterAll(() => queues.close())

/** Puts a log record into its queue, and waits until it is stored: whatever else workers could take then was taken. */
async function untilALogIsStored(): Promise<void> {
  const body = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'barrier' } }] }] }] }
  await letters.enqueue('logs', newJobId(), [
    traceFrame(queues.surface(), Buffer.from(JSON.stringify(body)), { receipt: undefined }),
  ])
  await letters.untilDone('logs')
}

/** Adds jobs as somebody does who does not know what a job refers to. */
async function addMalformedJobs(count: number): Promise<void> {
  const bull = new Queue('express', { connection: redis, prefix: keys.bull })
  await bull.addBulk(Array.from({ length: count }, (_, i) => ({ name: 'by hand', data: { number: i } })))
  await bull.close()
}

async function sampleOf(metric: string): Promise<string | undefined> {
  const metrics = createMetrics('test')
  watchQueueStates(metrics, onOneServer(redis))
  const text = await metrics.registry.metrics()
  return text
    .split('\n')
    .find(line => line.startsWith(`${metric}{queue="traces"`))
    ?.split(' ')[1]
}

it('shows the queues, and marks one that has requests and no worker', async () => {
  const { stdout } = await run()
  const [head, ...table] = stdout.trimEnd().split('\n')
  expect(head?.split(/ +/)).toEqual('QUEUE PARTITIONS REQUESTS COST OLDEST WORKERS BUSY FAILED STUCK'.split(' '))
  expect(table).toHaveLength(QUEUES.length)
  await enqueue('a', 'b')
  expect(await rowOf('traces')).toMatchObject({ partitions: 1, requests: 2, workers: 0, notes: ['NO WORKER'] })
  expect((await run()).stdout).toMatch(/^traces +1 +2 +\d+ +\d+ s +0 +0\.0 +0 +0 +NO WORKER$/m)
  expect(await rowOf('logs')).toMatchObject({ requests: 0, notes: [] })
})

it('lists jobs with payload, surface and receipt, and the reason of their last attempt', async () => {
  const secret = await ensureReceiptSecret(redis)
  const jobId = await enqueue('a', 'b')
  const [job, ...others] = await lines('jobs', 'traces')
  expect(others).toEqual([])
  expect(job).toMatchObject({
    ...{ id: jobId, lane: 'bulk', state: 'waiting', attempts: 0, reason: '', hasPayload: true, requests: 2 },
    ...queues.surface(),
  })
  const { workspaceId, surfaceId } = queues.surface()
  expect(openReceiptId(secret, workspaceId, String(job?.receiptId))).toMatchObject({
    kind: 'traces',
    surfaceId,
    index: 0,
  })
  await redis.set(keys.payload(jobId), 'no payload of this version')
  start()
  const failed = await until(
    'the attempt has failed',
    async () => (await lines('jobs', 'traces', '--state', 'delayed'))[0],
  )
  expect(failed).toMatchObject({
    id: jobId,
    attempts: 1,
    reason: expect.stringMatching(/payload version/),
    hasPayload: true,
  })
})

describe('jobs that somebody has added by hand', () => {
  it('are counted, listed, retried and removed, and real requests are stored beside them', async () => {
    await addMalformedJobs(700)
    start()
    await enqueue('real')
    await until('all have failed', async () => (await redis.zcard(keys.failed('express'))) === 700, {
      deadlineMs: 60_000,
    })
    await untilDone()
    expect(await sampleOf('penstock_jobs_failed')).toBe('700')
    expect(await rowOf('traces')).toMatchObject({ failedJobs: 700, notes: ['failed jobs'] })
    const listed = await lines('jobs', 'traces', '--state', 'failed', '--limit', '1000')
    expect(listed).toHaveLength(700)
    expect(listed[0]).toMatchObject({ hasPayload: false, attempts: 1, reason: expect.stringContaining('payloads') })

    expect((await run('retry', 'traces', '--all-failed')).code).toBe(0)
    await until('all have failed again', async () => (await redis.zcard(keys.failed('express'))) === 700, {
      deadlineMs: 60_000,
    })
    const refused = await run('to-dead-letters', 'traces', String(listed[0]?.id))
    expect(refused).toMatchObject({ code: 10, stderr: expect.stringContaining('it has no payload') })
    expect((await run('remove', 'traces', '--all-failed')).code).toBe(0)
    expect(await rowOf('traces')).toMatchObject({ failedJobs: 0, notes: [] })
    expect(await sampleOf('penstock_jobs_failed')).toBe('0')
    expect(await redis.keys(`${keys.bull}:express:[0-9]*`)).toEqual([])
    expect(await spanNames()).toEqual(['real'])
  })
})

describe('a paused queue', () => {
  it('is not taken from, also by workers that start later, and loses nothing', async () => {
    start()
    await enqueue('before')
    await letters.untilDone('traces')
    expect((await run('pause', 'traces')).stdout).toContain('traces is paused')
    const names = Array.from({ length: 50 }, (_, i) => `span ${String(i).padStart(2, '0')}`)
    for (const name of names.slice(0, 25)) await enqueue(name)
    await untilALogIsStored()
    await stop()
    start()
    for (const name of names.slice(25)) await enqueue(name)
    await untilALogIsStored()
    expect(await spanNames()).toEqual(['before'])
    expect(await redis.zcard(keys.pending)).toBe(50)
    expect(await rowOf('traces')).toMatchObject({ requests: 50, paused: true, notes: ['paused', 'NO WORKER'] })
    expect(await sampleOf('penstock_queue_paused')).toBe('1')
    await run('resume', 'traces')
    await letters.untilDone('traces')
    expect(await spanNames()).toEqual(['before', ...names])
    expect(await sampleOf('penstock_queue_paused')).toBe('0')
  })

  it('wants no further worker, and its pool does not count as wedged', async () => {
    await enqueue('a')
    const all = onOneServer(redis)
    expect((await readWaitingJobs(all, ['traces']))?.get('traces')).toBe(1)
    await run('pause', 'traces')
    expect((await readWaitingJobs(all, ['traces']))?.get('traces')).toBe(0)
    expect((await createQueueLoads(all, async () => undefined)()).traces).toMatchObject({
      ...{ isPaused: true, requests: 1, ageSeconds: 0, costBytes: 0 },
    })
    await run('resume', 'traces')
    expect((await createQueueLoads(all, async () => undefined)()).traces).toMatchObject({
      isPaused: false,
      requests: 1,
    })
  })
})

describe('errors', () => {
  it('name the job or the argument', async () => {
    expect(await run('remove', 'traces', '4711', 'meta')).toMatchObject({
      ...{ code: 3, stdout: '' },
      stderr: ['4711', 'meta'].map(id => `${id}: there is no such job: it is done, or was never added\n`).join(''),
    })
    expect(await run('retry', 'traces')).toMatchObject({ code: 2, stderr: expect.stringContaining('--all-failed') })
    expect(await run('retry', 'traces', '1', '--all-failed')).toMatchObject({ code: 2 })
    expect(await run('pause', 'everything')).toMatchObject({ code: 2, stderr: expect.stringContaining('everything') })
    expect(await run('to-dead-letters', 'dead-letters', '1')).toMatchObject({ code: 3 })
    const away = { env: { ...env, REDIS_URL: 'redis://127.0.0.1:1' } }
    expect(await runCli(['queues'], away)).toMatchObject({ code: 1, stderr: expect.stringContaining('Redis') })
  })
})
