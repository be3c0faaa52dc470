import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { listFindings } from '../../schemas/http/findings/operations.ts'
import { FairShares } from '../../shared/concurrency/fair-shares.ts'
import { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Reply } from '../../shared/http/route.ts'
import { withinShares } from './read-shares.ts'

const NEVER = new AbortController().signal

function setup({ slots = 2, waiting = 2, replyBytes = 1_000_000 } = {}) {
  const shares = { requests: new FairSlots({ slots, waiting }), replyBytes: new FairShares(replyBytes) }
  const ask = (run: () => Promise<Reply>, signal = NEVER, owner = 'ws_1') =>
    withinShares(shares, { owner, operation: listFindings, signal }, run)
  return { ask, shares }
}

const reply = (size: number) => async (): Promise<Reply> => ({ status: 200, body: 'x'.repeat(size) })

it('counts a large reply until its end, and refuses one over the share', async () => {
  const { ask, shares } = setup()
  const first = await ask(reply(400_000))
  expect(shares.replyBytes.used).toBe(400_000)
  const second = await ask(reply(400_000))
  expect(second.status).toBe(429)
  expect(JSON.parse(String(second.body))).toMatchObject({ code: 'INGEST_BACKPRESSURE', service: 'frontier-runtime' })
  expect(second.headers?.find(([name]) => name === 'retry-after')?.[1]).toBe('2')
  expect((await ask(reply(10))).status).toBe(200)
  expect((await ask(reply(400_000), NEVER, 'ws_2')).status).toBe(200)
  first.onEnd?.()
  expect(shares.replyBytes.used).toBe(400_000)
})

it('counts a large reply of bytes too', async () => {
  const { ask, shares } = setup()
  const { onEnd } = await ask(async () => ({ status: 200, body: Buffer.alloc(300_000) }))
  expect(shares.replyBytes.used).toBe(300_000)
  onEnd?.()
  expect(shares.replyBytes.used).toBe(0)
})

it('refuses a request that has no turn in time', async () => {
  const { ask } = setup()
  let end = () => {}
  const running = ask(() => new Promise<Reply>(resolve => (end = () => resolve({ status: 200 }))))
  expect((await ask(reply(1), AbortSignal.timeout(20))).status).toBe(429)
  end()
  expect((await running).status).toBe(200)
  expect((await ask(reply(1))).status).toBe(200)
})

it('keeps the slot of an abandoned request until its queries have ended', async () => {
  const { ask } = setup()
  const left = new AbortController()
  const abandoned = ask(async () => {
    left.abort()
    throw new Error('the client has left')
  }, left.signal)
  await expect(abandoned).rejects.toThrow('the client has left')
  expect((await ask(reply(1), AbortSignal.timeout(20))).status).toBe(429)
  await delay(600)
  expect((await ask(reply(1), AbortSignal.timeout(20))).status).toBe(200)
})
