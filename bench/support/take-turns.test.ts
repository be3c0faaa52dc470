import { describe, expect, it } from 'vitest'
import { type Contender, takeTurns } from './take-turns.ts'

describe('takeTurns', () => {
  it('returns a row per contender, with one sample per round and without the warm-up', async () => {
    const turns: string[] = []
    const contender = (name: string, done: number): Contender => ({
      name,
      take() {
        if (turns.at(-1) !== name) turns.push(name)
        return done
      },
    })
    const told: string[] = []
    const context = { quick: true, progress: (text: string) => void told.push(text) }
    const product = { ...contender('product', 3_000), ratios: [{ to: 'peer' }] }
    const rows = await takeTurns([product, contender('peer', 1)], 'spans/s', context)
    // Each round begins with the next contender, which is the last one of the round before.
    expect(turns).toEqual(['product', 'peer', 'product', 'peer', 'product'])
    expect(told).toEqual(['warm-up', 'round 1 of 3', 'round 2 of 3', 'round 3 of 3'])
    expect(rows).toEqual([
      { name: 'product', unit: 'spans/s', samples: expect.any(Array), ratios: [{ to: 'peer' }] },
      { name: 'peer', unit: 'spans/s', samples: expect.any(Array) },
    ])
    const [fast, slow] = rows.map(({ samples }) => samples)
    expect(fast).toHaveLength(3)
    for (const [round, rate] of (fast ?? []).entries()) expect((rate ?? 0) / (slow?.[round] ?? 0)).toBeGreaterThan(300)
  })
})
