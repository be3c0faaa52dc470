import { expect, it } from 'vitest'
import { measureRounds, rotated, rowsOf, samplesOf } from './rounds.ts'

it('begins each round with the next contender', async () => {
  const order: string[] = []
  const contender = (name: string) => ({
    name,
    measure: async (round: number) => order.push(`${round}${name}`),
  })
  await measureRounds(
    { progress: () => {}, failed: () => {} },
    { what: 'x', rounds: 4, contenders: ['a', 'b', 'c'].map(contender), describe: String },
  )
  expect(order).toEqual(['1a', '1b', '1c', '2b', '2c', '2a', '3c', '3a', '3b', '4a', '4b', '4c'])
})

it('reports a measurement that fails, and keeps the others in their rounds', async () => {
  const failures: string[] = []
  const product = {
    name: 'product',
    measure: async (round: number) => {
      if (round === 2) throw new Error('2,118 responses were 503')
      return round * 10
    },
  }
  const peer = { name: 'peer', measure: async (round: number) => round }
  const results = await measureRounds(
    { progress: () => {}, failed: text => void failures.push(text) },
    { what: 'logs', rounds: 3, contenders: [product, peer], describe: String },
  )
  expect(samplesOf(results.get('product') ?? [], value => value)).toEqual([10, null, 30])
  expect(samplesOf(results.get('peer') ?? [], value => value)).toEqual([1, 2, 3])
  expect(failures).toEqual(['logs, round 2/3: product: 2,118 responses were 503'])
})

it('has no rows for a contender whose rounds all failed', () => {
  const row = { name: 'a', unit: 's', samples: [] }
  expect(rowsOf([undefined, undefined], () => [row])).toEqual([])
  expect(rowsOf([undefined, 1], () => [row])).toEqual([row])
})

it('rotates nothing of an empty list', () => {
  expect(rotated([], 3)).toEqual([])
})
