import { expect, it } from 'vitest'
import { rankOf } from './finding-moves-table.ts'

it('ranks with resolved frames are above all others, then those of later maps, within 64 bits', () => {
  const at = (time: string) => Date.parse(time) * 1_000
  const sequences = [0, at('2026-11-28T00:00:00.000Z'), at('2026-11-28T00:00:00.300Z'), at('2041-01-01T00:00:00Z')]
  const ranks = [0, 1].flatMap(resolved => sequences.map(sequence => rankOf(resolved, sequence)))
  expect(ranks).toEqual([...new Set(ranks)].sort((a, b) => (a < b ? -1 : 1)))
  // Room for a revision of rules.
  for (const rank of ranks) expect(BigInt.asUintN(64, rank) & ~((1n << 30n) - 1n)).toBe(rank)
})
