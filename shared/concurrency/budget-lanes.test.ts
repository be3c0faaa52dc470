import { describe, expect, it } from 'vitest'
import { Budget } from './budget.ts'

type Lane = 'express' | 'bulk'

/** Requests amounts and records the order in which they were granted. */
function recorder(budget: Budget) {
  const granted: string[] = []
  const releases = new Map<string, () => void>()
  return {
    granted,
    async request(name: string, lane: Lane, amount: number): Promise<void> {
      const release = await budget.acquire(amount, { lane })
      granted.push(name)
      releases.set(name, release)
    },
    async release(name: string): Promise<void> {
      releases.get(name)?.()
      await new Promise(resolve => setImmediate(resolve))
    },
  }
}

const settled = () => new Promise(resolve => setImmediate(resolve))

describe('a budget whose express lane goes first', () => {
  it('serves express jobs before bulk jobs that waited longer', async () => {
    const jobs = recorder(new Budget(10, { now: () => 0 }))
    void jobs.request('first', 'express', 10)
    void jobs.request('bulk', 'bulk', 5)
    void jobs.request('express', 'express', 10)
    await settled()
    await jobs.release('first')
    expect(jobs.granted).toEqual(['first', 'express'])
    await jobs.release('express')
    expect(jobs.granted).toEqual(['first', 'express', 'bulk'])
  })

  it('serves a bulk job that has waited for a second before the next express job', async () => {
    let now = 0
    const jobs = recorder(new Budget(10, { now: () => now }))
    void jobs.request('first', 'express', 10)
    void jobs.request('bulk', 'bulk', 5)
    void jobs.request('express', 'express', 10)
    await settled()
    now = 1_000
    await jobs.release('first')
    expect(jobs.granted).toEqual(['first', 'bulk'])
    await jobs.release('bulk')
    expect(jobs.granted).toEqual(['first', 'bulk', 'express'])
  })

  it('leaves half of the limit to express jobs while bulk jobs wait', async () => {
    const jobs = recorder(new Budget(10, { now: () => 0 }))
    void jobs.request('bulk 1', 'bulk', 5)
    void jobs.request('bulk 2', 'bulk', 5)
    void jobs.request('express', 'express', 5)
    await settled()
    expect(jobs.granted).toEqual(['bulk 1', 'express'])
    await jobs.release('express')
    expect(jobs.granted).toEqual(['bulk 1', 'express'])
    await jobs.release('bulk 1')
    expect(jobs.granted).toEqual(['bulk 1', 'express', 'bulk 2'])
  })

  it.each(['express', 'bulk'] as const)(
    'grants an amount over the limit to an %s job once nothing is held',
    async lane => {
      const jobs = recorder(new Budget(10, { now: () => 0 }))
      void jobs.request('small', 'express', 1)
      void jobs.request('huge', lane, 100)
      await settled()
      expect(jobs.granted).toEqual(['small'])
      await jobs.release('small')
      expect(jobs.granted).toEqual(['small', 'huge'])
    },
  )

  it('rejects a waiter whose deadline passes, and serves the next one', async () => {
    const budget = new Budget(10, { now: () => 0 })
    const jobs = recorder(budget)
    void jobs.request('first', 'express', 6)
    const deadline = new AbortController()
    const late = budget.acquire(10, { signal: deadline.signal })
    void jobs.request('small', 'express', 4)
    await settled()
    deadline.abort()
    await expect(late).rejects.toThrow(/deadline passed/)
    await settled()
    expect(jobs.granted).toEqual(['first', 'small'])
    await expect(budget.acquire(1, { lane: 'bulk', signal: deadline.signal })).rejects.toThrow(/deadline passed/)
  })
})
