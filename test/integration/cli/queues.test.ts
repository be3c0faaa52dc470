import { Queue } from 'bullmq'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { ensureReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { openReceiptId } from '../../../shared/ids/receipt.ts'
import { newJobId, queueKeys } from '../../../shared/queue/queue.ts'
import { createQueueLoads } from '../../../shared/queue/watch/queue-loads.ts'
import { watchQueueStates } from '../../../shared/queue/watch/queue-states.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { readWaitingJobs } from '../../../workers/queue/backlog.ts'
import { runCli } from '../../support/clients/run-cli.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { connectLetters, traceFrame } from '../../support/dead-letters.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/11`
const QUEUES: readonly QueueName[] = ['traces', 'logs', 'exceptions', 'receipts', 'dead-letters', 'dead-letter-index']
const database = await createTestDatabase(services.clickhouseUrl, `cli_queues_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const letters = connectLetters(services, redisUrl, clickhouse)
const { redis } = letters
const keys = queueKeys('traces')
const env = { REDIS_URL: redisUrl, DIRECTORY_REDIS_URL: redisUrl }
let pools: TestPools | undefined
let surface: { workspaceId: string; surfaceId: string }

beforeEach(async () => {
  await redis.flushdb()
  surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
})
afterEach(stop)
afterAll(async () => {
  await letters.close()
  await clickhouse.close()
  await database.drop()
})

function start(settings: Record<string, string> = {}): TestPools {
  pools ??= startPools(QUEUES, { ...services, redisUrl }, database.name, settings)
  return pools
}

async function stop(): Promise<void> {
  await pools?.stop()
  pools = undefined
}

const run = (...words: string[]) => runCli(['queues', ...words], { env })

/** Runs a command that must succeed, and returns the lines of JSON that it prints. */
async function lines<T>(...words: string[]): Promise<T[]> {
  const { code, stdout, stderr } = await run(...words, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line)]))
}

interface Row {
  readonly queue: QueueName
  readonly [column: string]: unknown
}
const rowOf = async (queue: QueueName) => (await lines<Row>()).find(row => row.queue === queue)

const span = (name: string) => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), name })
const exportOf = (name: string) =>
  Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span(name)] }] }] }))

/** Puts a job with one request for each span into the queue of traces. Returns its id. */
async function enqueue(...names: string[]): Promise<string> {
  const jobId = newJobId()
  await letters.enqueue(
    'traces',
    jobId,
    names.map(name => traceFrame(surface, exportOf(name))),
  )
  return jobId
}

/** Puts a log record into its queue, and waits until it is stored: whatever else workers could take then was taken. */
async function untilALogIsStored(): Promise<void> {
  const body = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'barrier' } }] }] }] }
  await letters.enqueue('logs', newJobId(), [traceFrame(surface, Buffer.from(JSON.stringify(body)), { receipt: undefined })])
  await letters.untilDone('logs')
}

const spanNames = async () =>
  (
    await database.rows<{ name: string }>(
      `SELECT name FROM spans WHERE workspace_id = '${surface.workspaceId}' ORDER BY name`,
    )
  ).map(({ name }) => name)

/** Adds jobs as somebody does who does not know what a job refers to. */
async function addMalformedJobs(count: number): Promise<void> {
  const bull = new Queue('express', { connection: redis, prefix: keys.bull })
  await bull.addBulk(Array.from({ length: count }, (_, i) => ({ name: 'by hand', data: { number: i } })))
  await bull.close()
}

async function valueOf(metric: string): Promise<string | undefined> {
  const metrics = createMetrics('test')
  watchQueueStates(metrics, onOneServer(redis))
  const text = await metrics.registry.metrics()
  return text.split('\n').find(line => line.startsWith(`${metric}{queue="traces"`))?.split(' ')[1]
}

it('shows the queues, and marks one that has requests and no worker', async () => {
  const { stdout } = await run()
  const [head, ...table] = stdout.trimEnd().split('\n')
  expect(head?.split(/ +/)).toEqual(
    'QUEUE PARTITIONS REQUESTS COST OLDEST WORKERS BUSY FAILED STUCK'.split(' '),
  )
  expect(table).toHaveLength(14)
  await enqueue('a', 'b')
  expect(await rowOf('traces')).toMatchObject({ partitions: 1, requests: 2, workers: 0, notes: ['NO WORKER'] })
  expect((await run()).stdout).toMatch(/^traces +1 +2 +\d+ +\d+ s +0 +0\.0 +0 +0 +NO WORKER$/m)
  expect(await rowOf('logs')).toMatchObject({ requests: 0, notes: [] })
})

it('lists jobs with payload, surface and receipt, and the reason of their last attempt', async () => {
  const secret = await ensureReceiptSecret(redis)
  const jobId = await enqueue('a', 'b')
  const [job, ...others] = await lines<Row>('jobs', 'traces')
  expect(others).toEqual([])
  expect(job).toMatchObject({
    ...{ id: jobId, lane: 'bulk', state: 'waiting', attempts: 0, reason: '', hasPayload: true, requests: 2 },
    ...surface,
  })
  const { workspaceId, surfaceId } = surface
  expect(openReceiptId(secret, workspaceId, String(job?.receiptId))).toMatchObject({ kind: 'traces', surfaceId, index: 0 })
  await redis.set(keys.payload(jobId), 'no payload of this version')
  start()
  const failed = await until('the attempt has failed', async () => (await lines<Row>('jobs', 'traces', '--state', 'delayed'))[0])
  expect(failed).toMatchObject({ id: jobId, attempts: 1, reason: expect.stringMatching(/payload version/), hasPayload: true })
})

describe('jobs that somebody has added by hand', () => {
  it('are counted, listed, retried and removed, and real requests are stored beside them', async () => {
    await addMalformedJobs(700)
    start()
    await enqueue('real')
    await until('all have failed', async () => (await redis.zcard(keys.failed('express'))) === 700, { deadlineMs: 60_000 })
    await letters.untilDone(...QUEUES)
    expect(await valueOf('penstock_jobs_failed')).toBe('700')
    expect(await rowOf('traces')).toMatchObject({ failedJobs: 700, notes: ['failed jobs'] })
    const listed = await lines<Row>('jobs', 'traces', '--state', 'failed', '--limit', '1000')
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
    expect(await valueOf('penstock_jobs_failed')).toBe('0')
    expect(await redis.keys(`${keys.bull}:express:[0-9]*`)).toEqual([])
    expect(await spanNames()).toEqual(['real'])
  })
})

describe('a job with a payload', () => {
  it('is not removed, becomes a dead letter with the reason of the operator, and is stored once by a replay', async () => {
    const secret = await ensureReceiptSecret(redis)
    const jobId = await enqueue('a', 'b')
    const [before] = await lines<Row>('jobs', 'traces')
    const refused = await run('remove', 'traces', jobId)
    expect(refused).toMatchObject({ code: 10, stdout: '' })
    expect(refused.stderr).toContain(`"penstock queues to-dead-letters traces ${jobId}"`)
    expect((await run('to-dead-letters', 'traces', jobId, '--reason', 'ends its worker')).code).toBe(0)
    expect(await lines('jobs', 'traces')).toMatchObject([{ id: jobId, setAside: 'ends its worker', hasPayload: true }])

    // No letter is left of the bound of the surface, which is not for these.
    start({ DEAD_LETTER_MAX_COUNT_PER_DAY: '1' })
    await letters.untilDone(...QUEUES)
    expect(await spanNames()).toEqual([])
    const found = await letters.list(surface.workspaceId)
    expect(found).toMatchObject([1, 2].map(() => ({ queue: 'traces', reason: 'set_aside', detail: 'ends its worker' })))
    const commit = openReceiptId(secret, surface.workspaceId, String(before?.receiptId))?.commit.toString('hex')
    const [entry] = await database.rows<{ reason: string }>(
      `SELECT refused[1].reason AS reason FROM ingest_log WHERE hex(receipt_commit) = upper('${commit}')`,
    )
    expect(entry?.reason).toBe('set_aside: ends its worker')
    expect(await rowOf('traces')).toMatchObject({ requests: 0, costBytes: 0 })

    expect(await letters.replay(surface.workspaceId, found)).toBe(2)
    await letters.untilDone(...QUEUES)
    expect(await letters.replay(surface.workspaceId, found)).toBe(0)
    expect(await spanNames()).toEqual(['a', 'b'])
  })

  it('is set aside after its attempts have failed, whatever is in its payload', async () => {
    const jobId = await enqueue('a')
    await redis.hset(keys.job('bulk', jobId), 'data', 'not JSON')
    await redis.lrem(keys.waiting('bulk'), 0, jobId)
    await redis.zadd(keys.delayed('bulk'), (Date.now() + 3_600_000) * 4096, jobId)
    expect(await lines('jobs', 'traces')).toMatchObject([{ id: jobId, state: 'delayed', hasPayload: true }])
    expect((await run('to-dead-letters', 'traces', jobId)).code).toBe(0)
    start()
    await letters.untilDone(...QUEUES)
    expect(await letters.list(surface.workspaceId)).toMatchObject([{ reason: 'set_aside', detail: 'by an operator' }])
    expect(await spanNames()).toEqual([])
  })

  it('stays in a batch with others, whose rows may be stored', async () => {
    const jobId = await enqueue('a')
    const record = JSON.stringify({ jobIds: [jobId, 'another'], storedTables: [] })
    await redis.multi().hset(keys.batchOf, jobId, 'batch').hset(keys.batches, 'batch', record).exec()
    const refused = await run('to-dead-letters', 'traces', jobId)
    expect(refused).toMatchObject({ code: 10, stderr: expect.stringContaining('with those of 1 other job') })
    expect(await redis.hget(keys.job('bulk', jobId), 'data')).not.toContain('setAside')
  })

  it('is stuck while no worker has it, and given to the next one (retry-stuck.lua)', async () => {
    const jobId = await enqueue('a')
    await redis.lmove(keys.waiting('bulk'), keys.active('bulk'), 'RIGHT', 'LEFT')
    await redis.del(keys.marker('bulk'))
    expect(await rowOf('traces')).toMatchObject({ stuckJobs: 1, notes: ['NO WORKER', 'stuck jobs'] })
    expect(await lines('jobs', 'traces', '--state', 'stuck')).toMatchObject([{ id: jobId, losses: 0, hasPayload: true }])
    expect((await run('retry', 'traces', jobId)).code).toBe(0)
    expect(await lines('jobs', 'traces')).toMatchObject([{ id: jobId, state: 'waiting', losses: 1 }])
    start()
    await letters.untilDone(...QUEUES)
    expect(await spanNames()).toEqual(['a'])
  })

  it('is left alone while a worker has it', async () => {
    const jobId = await enqueue('a')
    await redis.lmove(keys.waiting('bulk'), keys.active('bulk'), 'RIGHT', 'LEFT')
    await redis.set(keys.lock('bulk', jobId), 'of a worker')
    expect(await lines('jobs', 'traces', '--state', 'active')).toMatchObject([{ id: jobId }])
    expect(await run('retry', 'traces', jobId)).toMatchObject({ code: 10, stderr: expect.stringContaining('in progress') })
    await redis.del(keys.payload(jobId))
    await redis.zrem(keys.pending, jobId)
    expect(await run('remove', 'traces', jobId)).toMatchObject({
      code: 10,
      stderr: expect.stringContaining('a worker has it in progress'),
    })
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
    expect(await valueOf('penstock_queue_paused')).toBe('1')
    await run('resume', 'traces')
    await letters.untilDone('traces')
    expect(await spanNames()).toEqual(['before', ...names])
    expect(await valueOf('penstock_queue_paused')).toBe('0')
  })

  it('wants no further worker, and its pool does not count as wedged', async () => {
    await enqueue('a')
    const queues = onOneServer(redis)
    expect((await readWaitingJobs(queues, ['traces']))?.get('traces')).toBe(1)
    await run('pause', 'traces')
    expect((await readWaitingJobs(queues, ['traces']))?.get('traces')).toBe(0)
    expect((await createQueueLoads(queues)()).traces).toMatchObject({
      ...{ isPaused: true, requests: 1, ageSeconds: 0, costBytes: 0 },
    })
    await run('resume', 'traces')
    expect((await createQueueLoads(queues)()).traces).toMatchObject({ isPaused: false, requests: 1 })
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
