import { expect, it } from 'vitest'
import { KIB, MIB } from '../../../schemas/units.ts'
import { BodyMemory, isMapped } from './body-memory.ts'

const MOST = 20 * MIB
const setup = (used = 0) => {
  const held = { used }
  return { held, memory: new BodyMemory(held, 96 * MIB) }
}
const take = (memory: BodyMemory, capacity: number, most = MOST) => {
  const buffer = memory.take(capacity, most)
  if (buffer === undefined) throw new Error('there is no memory')
  return buffer
}

it('grows a large buffer in place', () => {
  const { memory } = setup()
  const buffer = take(memory, 64 * KIB)
  buffer.fill(7)
  const grown = memory.grow(buffer, 10 * MIB)
  expect([isMapped(buffer), grown?.length, grown?.buffer === buffer.buffer]).toEqual([true, 10 * MIB, true])
  expect(grown?.subarray(0, buffer.length).equals(Buffer.alloc(buffer.length, 7))).toBe(true)
})

it('gives small buffers memory of their own', () => {
  const { memory } = setup()
  const [first, second] = [take(memory, KIB), take(memory, KIB)]
  expect([isMapped(first), first.buffer.byteLength, first.buffer === second.buffer]).toEqual([false, KIB, false])
})

it('reuses large memory, and frees the rest when it is given back', () => {
  const { memory } = setup()
  const buffers = Array.from({ length: 30 }, () => take(memory, MIB))
  for (const buffer of buffers) memory.giveBack(buffer)
  expect(buffers.filter(({ buffer }) => buffer.byteLength > 0)).toHaveLength(16)
  expect(memory.cheapestCapacity(100 * KIB)).toBe(MIB)
  const reused = take(memory, MIB)
  expect(buffers.some(({ buffer }) => buffer === reused.buffer)).toBe(true)
  const small = take(memory, KIB)
  memory.giveBack(small)
  expect(small.length).toBe(0)
})

it('keeps no large part of a buffer, and less the more memory bodies take', () => {
  const { held, memory } = setup()
  const large = take(memory, MOST)
  memory.giveBack(large)
  expect(large.buffer.byteLength).toBe(4 * MIB)
  held.used = 88 * MIB
  const another = take(memory, MIB)
  memory.giveBack(another)
  expect(memory.cheapestCapacity(100 * KIB)).toBe(MIB)
  held.used = 96 * MIB
  memory.giveBack(take(memory, MIB))
  expect(memory.cheapestCapacity(100 * KIB)).toBe(100 * KIB)
})

it('returns nothing if the machine has no memory', () => {
  const { memory } = setup()
  expect(memory.take(100 * KIB, 2 ** 52)).toBeUndefined()
})
