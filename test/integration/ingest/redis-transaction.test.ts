import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { RedisTransactions, type Transaction } from '../../../ingest/commit/redis-transaction.ts'
import { respCommand, respCommandBefore } from '../../../ingest/commit/resp.ts'
import { connectProducer } from '../../../shared/queue/redis.ts'
import { until } from '../../support/until.ts'

/**
 * `RedisTransactions` adds to the queue of replies of ioredis by `sendCommand` with a stream of its own, which ioredis does not
 * document. These tests state what it relies on. When one fails after an upgrade, compare `sendCommand` and `flushQueue` in
 * `built/Redis.js` and `shiftCommand` in `built/DataHandler.js` of the new version.
 */

const TIMEOUT = { timeoutMs: 5_000 }
const [A, B] = ['transaction:a', 'transaction:b']
let dir: string
/** A server of its own, because its writes are paused. */
let server: LocalService
let other: Redis
let redis: Redis
let transactions: RedisTransactions

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-transaction-'))
  server = await startRedis({ dir, port: await freePort(), password: 'test', log: () => {} })
})

afterAll(async () => {
  await server?.kill9()
  await rm(dir, { recursive: true, force: true })
})

beforeEach(async () => {
  other = new Redis(server.url)
  await other.del(A, B)
  redis = connectProducer(server.url, 5_000, pino({ level: 'silent' }))
  transactions = new RedisTransactions(redis)
  await connected()
})

afterEach(() => {
  redis.disconnect()
  other.disconnect()
})

const connected = () => until('redis is connected', () => redis.status === 'ready')

/** Waits until the connection is another one than `before`. */
const replaced = (before: unknown) =>
  until('redis is connected again', () => redis.stream !== before && redis.status === 'ready')

/** Returns a transaction that stores a value for a minute, and runs one more command. */
function storing(value: Buffer, ...words: (string | number)[]): Transaction {
  const head = respCommandBefore(value.length, 'PSETEX', A, 60_000)
  return { commands: 2, head, value, tail: `\r\n${respCommand(...words)}` }
}

const increment: Transaction = { commands: 1, head: '', tail: respCommand('INCR', B) }

const text = Buffer.from('text')

it('stores values byte for byte, whatever their size', async () => {
  for (const size of [0, 1, 16_383, 3_000_000]) {
    const value = Buffer.from(Array.from({ length: size }, (_, i) => (i * 31) % 256))
    const [stored, count] = await transactions.run(storing(value, 'INCR', B), TIMEOUT)
    expect([String(stored), typeof count]).toEqual(['OK', 'number'])
    expect((await other.getBuffer(A))?.equals(value)).toBe(true)
    expect(await other.pttl(A)).toBeGreaterThan(0)
  }
  expect(await other.get(B)).toBe('4')
})

it('takes words of every alphabet', async () => {
  await transactions.run({ commands: 1, head: respCommand('SET', A, 'é – 文'), tail: '' }, TIMEOUT)
  expect(await other.get(A)).toBe('é – 文')
})

it('gives every reply to its own sender, also to those of other commands and of another user of the connection', async () => {
  const second = new RedisTransactions(redis)
  const replies = await Promise.all(
    Array.from({ length: 200 }, (_, i) => {
      if (i % 4 === 0) return redis.echo(`echo ${i}`)
      const echo = { commands: 2, head: respCommand('ECHO', `echo ${i}`), tail: respCommand('INCR', B) }
      return (i % 4 === 1 ? second : transactions).run(echo, TIMEOUT).then(([reply]) => String(reply))
    }),
  )
  expect(replies).toEqual(replies.map((_, i) => `echo ${i}`))
  expect(await other.get(B)).toBe('150')
})

it('returns the error of a command that fails', async () => {
  const [stored, error] = await transactions.run(storing(text, 'INCR', A), TIMEOUT)
  expect([String(stored), String(error)]).toEqual(['OK', expect.stringContaining('not an integer')])
  expect(error).toBeInstanceOf(Error)
})

it('runs nothing when Redis refuses a command, and leaves the connection usable', async () => {
  await expect(transactions.run(storing(text, 'no-such-command'), TIMEOUT)).rejects.toThrow('unknown command')
  expect(await redis.exists(A)).toBe(0)
  expect(await transactions.run(increment, TIMEOUT)).toEqual([1])
})

describe('the last command, which ioredis sends', () => {
  it('is part of the transaction', async () => {
    const last = () => redis.incr(B)
    expect(await transactions.run(storing(text, 'INCR', B), { ...TIMEOUT, last })).toHaveLength(3)
    expect(await transactions.run(increment, { ...TIMEOUT, last })).toEqual([3, 4])
  })

  it('makes the transaction fail if it is sent too late', async () => {
    const last = async () => {
      await Promise.resolve()
      return redis.incr(B)
    }
    const run = transactions.run(storing(text, 'INCR', B), { ...TIMEOUT, last })
    await expect(run).rejects.toThrow('outside of its transaction')
  })

  it('makes the transaction fail if it cannot be made', async () => {
    const last = async () => {
      throw new Error('no job')
    }
    await expect(transactions.run(increment, { ...TIMEOUT, last })).rejects.toThrow('outside of its transaction')
    expect(await redis.ping()).toBe('PONG')
  })
})

describe('replicas', () => {
  it('must be as many as given', async () => {
    const wait = { replicas: 1, timeoutMs: 20 }
    await expect(transactions.run(increment, { ...TIMEOUT, wait })).rejects.toThrow('0 of 1 replicas')
    const withLast = { ...TIMEOUT, wait, last: () => redis.incr(B) }
    await expect(transactions.run(storing(text, 'INCR', B), withLast)).rejects.toThrow('0 of 1 replicas')
    expect(await transactions.run(increment, TIMEOUT)).toEqual([4])
  })

  it('are not waited for when Redis refuses the transaction', async () => {
    const wait = { replicas: 1, timeoutMs: 4_000 }
    const refused = transactions.run(storing(text, 'no-such-command'), { ...TIMEOUT, wait })
    const first = await Promise.race([refused.catch((error: Error) => error.message), redis.ping()])
    expect(first).toContain('unknown command')
  })
})

describe('a connection', () => {
  it.each([
    ['by this process', () => void redis.stream.destroy()],
    ['by Redis', () => other.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')],
  ])('that is closed %s rejects what is in flight, and the next one runs transactions again', async (_, close) => {
    const before = redis.stream
    const id = String(await redis.client('ID'))
    await other.call('CLIENT', 'PAUSE', '60000', 'WRITE')
    const wait = { replicas: 1, timeoutMs: 4_000 }
    const large = storing(Buffer.alloc(3_000_000), 'INCR', B)
    const lost = [
      transactions.run(increment, TIMEOUT),
      transactions.run(storing(text, 'INCR', B), { ...TIMEOUT, wait }),
      transactions.run(large, TIMEOUT),
    ]
    const outcomes = Promise.allSettled(lost)
    await close()
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    await expect(transactions.run(increment, TIMEOUT)).rejects.toThrow('not connected')
    // Until then it would run the first transaction when it continues.
    await until('redis has dropped it', async () => (await other.call('CLIENT', 'LIST', 'ID', id)) === '')
    await other.call('CLIENT', 'UNPAUSE')
    await replaced(before)
    expect(await transactions.run(increment, TIMEOUT)).toEqual([1])
  })

  it('to a replica rejects what is in flight and is replaced, whenever its server became one', async () => {
    const wait = { replicas: 1, timeoutMs: 60_000 }
    let before = redis.stream
    const unconfirmed = transactions.run(increment, { ...TIMEOUT, wait })
    await until('redis waits for a replica', async () => /blocked_clients:1/.test(await other.info('clients')))
    try {
      await Promise.all([expect(unconfirmed).rejects.toThrow('UNBLOCKED'), other.call('REPLICAOF', '127.0.0.1', '1')])
      await replaced(before)
      before = redis.stream
      const refused = transactions.run(increment, TIMEOUT)
      const after = transactions.run(storing(text, 'INCR', B), { ...TIMEOUT, wait })
      await Promise.all([expect(refused).rejects.toThrow('READONLY'), expect(after).rejects.toThrow()])
      await replaced(before)
    } finally {
      await other.call('REPLICAOF', 'NO', 'ONE')
    }
    expect(await transactions.run(increment, TIMEOUT)).toEqual([2])
  })

  it('that is slow rejects at the deadline, and its late replies are not those of the next', async () => {
    await other.call('CLIENT', 'PAUSE', '60000', 'WRITE')
    const late = transactions.run(increment, { timeoutMs: 50 })
    const next = transactions.run(increment, TIMEOUT)
    await expect(late).rejects.toThrow('did not confirm in time')
    await other.call('CLIENT', 'UNPAUSE')
    expect(await next).toEqual([2])
    expect(await transactions.run(increment, TIMEOUT)).toEqual([3])
  })
})
