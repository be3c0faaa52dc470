import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../../../schemas/units.ts'
import { ownerOfPayload } from '../../../../shared/queue/payload-frame.ts'
import { queueKeys, shareMember } from '../../../../shared/queue/queue.ts'
import { RedisPayloadStore } from '../../../../workers/queue/payloads/payload-store.ts'
import { queueOn } from '../../../support/queue-on.ts'
import { startPools } from '../../../support/services/pools.ts'
import { until } from '../../../support/until.ts'
import {
  app,
  client,
  DATABASE,
  enqueue,
  enqueueSpan,
  framesOf,
  OWNER,
  opened,
  redis,
  redisUrl,
  requests,
  send,
  services,
  throwIn,
  workers,
} from './fixture.ts'

async function untilNothingWaits(): Promise<void> {
  for (const queue of ['traces', 'exceptions'] as const) {
    await until(`nothing of ${queue} waits`, async () => (await redis.zcard(queueKeys(queue).pending)) === 0)
  }
}

describe('requests of symbolication', () => {
  it('become dead letters when they are invalid', async () => {
    workers(['symbolication'])
    const jobId = await enqueue('symbolication', OWNER, Buffer.from('{"kind":"stack"}'))
    const letter = queueKeys('dead-letters').payload(`dead-${jobId}`)
    await until('the request is a dead letter', async () => (await redis.exists(letter)) === 1)
    await until('no request is left', async () => (await requests()).length === 0)
  })

  it('are made once, however often the finding occurs', async () => {
    const stack = await throwIn(`https://cdn.test/often/${app.script}`)
    workers(['traces', 'exceptions'])
    const sent = { stack, version: '5.0.0', service: 'often' }
    const variantId = await send(sent)
    await until('the first occurrence is stored', async () => (await framesOf(variantId)) !== undefined)
    await until('the stack is requested', async () => (await requests()).length === 1)
    for (let i = 0; i < 3; i++) await send(sent)
    await until('all occurrences are stored', async () => {
      const query = `SELECT count() AS n FROM exceptions WHERE variant_id = unhex('${variantId}')`
      const [row] = await (await client.query({ query, format: 'JSONEachRow' })).json<{ n: string }>()
      return Number(row?.n) === 4
    })
    expect(await requests()).toHaveLength(1)
  })

  it('are made by the worker that forms the batch of a dead worker again', async () => {
    const stack = await throwIn(`https://cdn.test/dead/${app.script}`)
    const { pending, lock } = queueKeys('exceptions')
    const before = await redis.zrange(pending, '0', '-1')
    const traces = startPools(['traces'], { ...services, redisUrl }, DATABASE)
    await enqueueSpan({ stack, version: '6.0.0', service: 'dead' }, OWNER)
    const [jobId = ''] = await until('the exception has left', async () => {
      const waiting = (await redis.zrange(pending, '0', '-1')).filter(id => !before.includes(id))
      return waiting.length > 0 ? waiting : undefined
    })
    await traces.stop()
    const batchId = randomUUID()
    await redis.set(lock('express', jobId), 'token of the dead')
    const named = new RedisPayloadStore(queueOn(redis, 'exceptions')).nameBatch(batchId, [
      { jobId, lane: 'express', token: 'token of the dead' },
    ])
    expect(await named).toEqual(new Map())
    await redis.del(lock('express', jobId))
    workers(['exceptions'])
    const request = queueKeys('symbolication').payload(`stacks-${batchId}-`)
    await until('the stack is requested', async () => (await requests()).some(key => key.startsWith(request)))
  })

  it('are not made while symbolication is far behind, and the exception is still stored', async () => {
    const { flow } = queueKeys('symbolication')
    const before = await requests()
    await redis.hincrby(flow, 'acceptedBytes', 256 * MIB)
    opened.push(() => redis.hincrby(flow, 'acceptedBytes', -256 * MIB))
    workers(['traces', 'exceptions'])
    const stack = await throwIn(`https://cdn.test/behind/${app.script}`)
    const variantId = await send({ stack, version: '7.0.0', service: 'behind' })
    await until('the finding exists', async () => (await framesOf(variantId)) !== undefined)
    await untilNothingWaits()
    expect(await requests()).toEqual(before)
  })

  it('are not made for a surface that has half of the room, and are made for others', async () => {
    const { flow, shares } = queueKeys('symbolication')
    const [bytes, other] = [70 * MIB, { workspaceId: 'ws_2', surfaceId: 'srf_2' }]
    await redis.hincrby(flow, 'acceptedBytes', bytes)
    await redis.zincrby(shares, bytes, shareMember(OWNER))
    opened.push(() => redis.hincrby(flow, 'acceptedBytes', -bytes))
    opened.push(() => redis.zincrby(shares, -bytes, shareMember(OWNER)))
    const before = await requests()
    const stack = await throwIn(`https://cdn.test/half/${app.script}`)
    // In one batch, where the request of one surface must not decide on that of another.
    for (const owner of [OWNER, other]) await send({ stack, version: '8.0.0', service: 'half' }, owner)
    workers(['traces', 'exceptions'])
    const made = await until('a stack is requested', async () => {
      const keys = (await requests()).filter(key => !before.includes(key))
      return keys.length > 0 ? keys : undefined
    })
    await untilNothingWaits()
    const owners = await Promise.all(made.map(async key => ownerOfPayload((await redis.getBuffer(key)) as Buffer)))
    expect(owners).toEqual([other])
    expect(await requests()).toHaveLength(before.length + 1)
  })
})
