import { expect, it } from 'vitest'
import { activeShards } from './shard-maps.ts'

const map = (shard: number, shards: number, beginsAtMs = 0) => ({ shard, shards, beginsAtMs })

it('divides rows by the largest map that has begun and that each of its shards has', () => {
  expect(activeShards([[], []], 10)).toBeUndefined()
  expect(activeShards([[map(0, 1)], []], 10)).toBe(1)
  expect(activeShards([[map(0, 1), map(0, 2, 11)], [map(1, 2, 11)]], 10)).toBe(1)
  expect(activeShards([[map(0, 1), map(0, 2, 9)], [map(1, 2, 9)]], 10)).toBe(2)
  // The migration that wrote it has not reached the second shard.
  expect(activeShards([[map(0, 1), map(0, 2, 9)], [map(1, 1)]], 10)).toBe(1)
})
