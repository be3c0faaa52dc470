import { expect, it } from 'vitest'
import { KIB, MIB } from '../../schemas/units.ts'
import { BufferPool } from './buffer-pool.ts'

it('reuses memory once it is given back, and not before', () => {
  const pool = new BufferPool(MIB)
  const first = pool.take(100 * KIB)
  const second = pool.take(100 * KIB)
  expect(second.buffer).not.toBe(first.buffer)
  pool.giveBack(first)
  const third = pool.take(70 * KIB)
  expect(third.buffer).toBe(first.buffer)
  expect([first.length, third.length]).toEqual([100 * KIB, 70 * KIB])
})

it('does not lend memory twice when it is given back twice', () => {
  const pool = new BufferPool(MIB)
  const buffer = pool.take(100)
  pool.giveBack(buffer)
  pool.giveBack(buffer)
  expect(pool.take(100).buffer).not.toBe(pool.take(100).buffer)
})

it('ignores a buffer of another source', () => {
  const pool = new BufferPool(MIB)
  const foreign = Buffer.allocUnsafeSlow(64 * KIB)
  pool.giveBack(foreign)
  expect(pool.take(64 * KIB).buffer).not.toBe(foreign.buffer)
})

it('frees a larger buffer of another source that it has taken over, and no smaller one', () => {
  const pool = new BufferPool(64 * KIB)
  const [large, small] = [Buffer.allocUnsafeSlow(65 * KIB), Buffer.allocUnsafeSlow(64 * KIB)]
  expect([pool.adopt(large), pool.adopt(small)]).toEqual([true, false])
  for (const buffer of [large, small]) pool.giveBack(buffer)
  expect([large.buffer.byteLength, small.buffer.byteLength]).toEqual([0, 64 * KIB])
})

it('keeps no more than its limit, and prefers the capacities in use', () => {
  const pool = new BufferPool(256 * KIB)
  const large = pool.take(256 * KIB)
  const small = pool.take(64 * KIB)
  const larger = pool.take(512 * KIB)
  for (const buffer of [large, small, larger]) pool.giveBack(buffer)
  expect(pool.take(512 * KIB).buffer).not.toBe(larger.buffer)
  expect(pool.take(256 * KIB).buffer).not.toBe(large.buffer)
  const again = new BufferPool(256 * KIB)
  const [first, second] = [again.take(256 * KIB), again.take(64 * KIB)]
  again.giveBack(first)
  again.giveBack(second)
  expect(again.take(64 * KIB).buffer).toBe(second.buffer)
})

it('keeps as many buffers of the capacity in use as its limit permits', () => {
  const pool = new BufferPool(256 * KIB)
  const other = pool.take(64 * KIB)
  const buffers = Array.from({ length: 4 }, () => pool.take(128 * KIB))
  for (const buffer of [other, ...buffers]) pool.giveBack(buffer)
  const again = Array.from({ length: 3 }, () => pool.take(128 * KIB).buffer)
  expect(again.map(memory => buffers.findIndex(({ buffer }) => buffer === memory))).toEqual([1, 0, -1])
})

it('frees no more memory of other capacities than it must', () => {
  const pool = new BufferPool(256 * KIB)
  const small = Array.from({ length: 3 }, () => pool.take(64 * KIB))
  const large = pool.take(128 * KIB)
  for (const buffer of [...small, large]) pool.giveBack(buffer)
  const again = Array.from({ length: 3 }, () => pool.take(64 * KIB).buffer)
  expect(again.map(memory => small.findIndex(({ buffer }) => buffer === memory))).toEqual([1, 0, -1])
  expect(pool.take(128 * KIB).buffer).toBe(large.buffer)
})

it('frees memory at once that it does not keep', () => {
  const pool = new BufferPool(256 * KIB)
  const buffers = [pool.take(20_000 * KIB), pool.take(64 * KIB), pool.take(256 * KIB)] as const
  const before = process.memoryUsage().arrayBuffers
  for (const buffer of buffers) pool.giveBack(buffer)
  expect(before - process.memoryUsage().arrayBuffers).toBeGreaterThanOrEqual((32 * KIB + 64) * KIB)
  expect(buffers.map(({ length }) => length)).toEqual([0, 0, 256 * KIB])
})
