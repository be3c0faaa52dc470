import { describe, expect, it } from 'vitest'
import { Budget } from './budget.ts'

type Lane = 'express' | 'bulk'

/** Runs tasks that end when the test ends them, and records the order in which they began. */
function recorder(slots: number) {
  let now = 0
  const threads = new Budget(slots, { order: 'equal time', now: () => now })
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  return {
    begun,
    async add(name: string, lane: Lane, count = 1): Promise<void> {
      const task = async () => {
        begun.push(name)
        await new Promise<void>(resolve => ends.set(name, resolve))
      }
      void threads.run(count, task, { lane })
      await settled()
    },
    /** Ends a task after this time. */
    async end(name: string, afterMs: number): Promise<void> {
      now += afterMs
      ends.get(name)?.()
      await settled()
    },
  }
}

const settled = () => new Promise(resolve => setImmediate(resolve))

describe('the slots of threads', () => {
  it('are given to an express chunk before bulk chunks that have waited longer', async () => {
    const { add, end, begun } = recorder(1)
    for (const name of ['bulk 1', 'bulk 2', 'bulk 3']) await add(name, 'bulk')
    await add('express', 'express')
    await end('bulk 1', 500)
    expect(begun).toEqual(['bulk 1', 'express'])
    await end('express', 20)
    expect(begun).toEqual(['bulk 1', 'express', 'bulk 2'])
  })

  it('are given to both lanes for the same time, however long a chunk takes', async () => {
    const { add, end, begun } = recorder(1)
    for (const number of [1, 2, 3]) await add(`bulk ${number}`, 'bulk')
    for (const number of [1, 2, 3, 4, 5]) await add(`express ${number}`, 'express')
    await end('bulk 1', 50)
    for (const number of [1, 2, 3]) await end(`express ${number}`, 20)
    expect(begun).toEqual(['bulk 1', 'express 1', 'express 2', 'express 3', 'bulk 2'])
    await end('bulk 2', 50)
    expect(begun.at(-1)).toBe('express 4')
  })

  it('are not saved by a lane without chunks', async () => {
    const { add, end, begun } = recorder(1)
    await add('bulk 1', 'bulk')
    await end('bulk 1', 60_000)
    await add('first', 'express')
    await add('express', 'express')
    await add('bulk 2', 'bulk')
    await end('first', 20)
    expect(begun).toEqual(['bulk 1', 'first', 'bulk 2'])
  })

  it('are all given to a chunk that no other of its lane overtakes', async () => {
    const { add, end, begun } = recorder(2)
    for (const name of ['a', 'b']) await add(name, 'express')
    await add('alone', 'express', 2)
    await add('c', 'express')
    await end('a', 10)
    expect(begun).toEqual(['a', 'b'])
    await end('b', 10)
    expect(begun).toEqual(['a', 'b', 'alone'])
    await end('alone', 10)
    expect(begun.at(-1)).toBe('c')
  })

  it('are given back by a task that throws', async () => {
    const threads = new Budget(1, { order: 'equal time' })
    await expect(threads.run(1, () => Promise.reject(new Error('no')), { lane: 'bulk' })).rejects.toThrow('no')
    expect(await threads.run(1, async () => 'ran')).toBe('ran')
  })
})
