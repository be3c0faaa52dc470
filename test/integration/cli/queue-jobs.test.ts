import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ensureReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { openReceiptId } from '../../../shared/ids/receipt.ts'
import { newJobId, queueKeys } from '../../../shared/queue/queue.ts'
import { traceFrame } from '../../support/dead-letters.ts'
import { connectQueueCommands } from '../../support/queue-commands.ts'

const queues = await connectQueueCommands('cli_queue_jobs', 11)
const { redis, letters, database, run, lines, rowOf, enqueue, spanNames, start, stop, surface, untilDone } = queues
const keys = queueKeys('traces')

beforeEach(() => queues.reset())
afterEach(stop)
afterAll(() => queues.close())

describe('a job with a payload', () => {
  it('is not removed, becomes a dead letter with the reason of the operator, and is stored once by a replay', async () => {
    const secret = await ensureReceiptSecret(redis)
    const jobId = await enqueue('a', 'b')
    const [before] = await lines('jobs', 'traces')
    const refused = await run('remove', 'traces', jobId)
    expect(refused).toMatchObject({ code: 10, stdout: '' })
    expect(refused.stderr).toContain(`"penstock queues to-dead-letters traces ${jobId}"`)
    expect((await run('to-dead-letters', 'traces', jobId, '--reason', 'ends its worker')).code).toBe(0)
    expect(await lines('jobs', 'traces')).toMatchObject([{ id: jobId, setAside: 'ends its worker', hasPayload: true }])

    // No letter is left of the bound of the surface, which is not for these.
    start({ DEAD_LETTER_MAX_COUNT_PER_DAY: '1' })
    await untilDone()
    expect(await spanNames()).toEqual([])
    const found = await letters.list(surface().workspaceId)
    expect(found).toMatchObject([1, 2].map(() => ({ queue: 'traces', reason: 'set_aside', detail: 'ends its worker' })))
    const commit = openReceiptId(secret, surface().workspaceId, String(before?.receiptId))?.commit.toString('hex')
    const [entry] = await database.rows<{ reason: string }>(
      `SELECT refused[1].reason AS reason FROM ingest_log WHERE hex(receipt_commit) = upper('${commit}')`,
    )
    expect(entry?.reason).toBe('set_aside: ends its worker')
    expect(await rowOf('traces')).toMatchObject({ requests: 0, costBytes: 0 })

    expect(await letters.replay(surface().workspaceId, found)).toBe(2)
    await untilDone()
    expect(await letters.replay(surface().workspaceId, found)).toBe(0)
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
    await untilDone()
    expect(await letters.list(surface().workspaceId)).toMatchObject([{ reason: 'set_aside', detail: 'by an operator' }])
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
    expect(await lines('jobs', 'traces', '--state', 'stuck')).toMatchObject([
      { id: jobId, losses: 0, hasPayload: true },
    ])
    expect((await run('retry', 'traces', jobId)).code).toBe(0)
    expect(await lines('jobs', 'traces')).toMatchObject([{ id: jobId, state: 'waiting', losses: 1 }])
    start()
    await untilDone()
    expect(await spanNames()).toEqual(['a'])
  })

  it('is left alone while a worker has it', async () => {
    const jobId = await enqueue('a')
    await redis.lmove(keys.waiting('bulk'), keys.active('bulk'), 'RIGHT', 'LEFT')
    await redis.set(keys.lock('bulk', jobId), 'of a worker')
    expect(await lines('jobs', 'traces', '--state', 'active')).toMatchObject([{ id: jobId }])
    expect(await run('retry', 'traces', jobId)).toMatchObject({
      code: 10,
      stderr: expect.stringContaining('in progress'),
    })
    await redis.del(keys.payload(jobId))
    await redis.zrem(keys.pending, jobId)
    expect(await run('remove', 'traces', jobId)).toMatchObject({
      code: 10,
      stderr: expect.stringContaining('a worker has it in progress'),
    })
  })

  it('of a queue without batches becomes a dead letter too, with a receipt', async () => {
    const jobId = newJobId()
    const frame = traceFrame(surface(), Buffer.from('no chunk'), { attributes: '{}' })
    await letters.enqueue('replay', jobId, [frame])
    expect((await run('to-dead-letters', 'replay', jobId)).code).toBe(0)
    start()
    await untilDone()
    expect(await letters.list(surface().workspaceId)).toMatchObject([{ queue: 'replay', reason: 'set_aside' }])
    const entries = await database.rows<{ reason: string }>(
      `SELECT refused[1].reason AS reason FROM ingest_log WHERE workspace_id = '${surface().workspaceId}'`,
    )
    expect(entries).toEqual([{ reason: 'set_aside: by an operator' }])
  })

  it('of the dead letters is one already', async () => {
    const jobId = newJobId()
    await letters.enqueue('dead-letters', jobId, [traceFrame(surface(), Buffer.from('a letter'))])
    expect(await run('to-dead-letters', 'dead-letters', jobId)).toMatchObject({
      ...{ code: 10, stdout: '' },
      stderr: expect.stringContaining('dead letters already'),
    })
  })
})
