import { expect, it } from 'vitest'
import { DAY_MS } from '../../schemas/units.ts'
import { slotsUntil } from './filled-time.ts'

it('divides the days until a time into parts that follow one another', () => {
  const endMs = Date.UTC(2026, 10, 25, 4, 30)
  const slots = slotsUntil(endMs, 2)
  expect(slots).toHaveLength(16)
  expect(slots[0]?.fromMs).toBe(endMs - 2 * DAY_MS)
  for (const [i, slot] of slots.entries()) {
    expect(slot.number).toBe(i)
    expect(slot.fromMs + slot.lengthMs).toBe(slots[i + 1]?.fromMs ?? endMs)
  }
})
