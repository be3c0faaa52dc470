import { expect, it } from 'vitest'
import { isSampled } from './sampling.ts'

const sessions = Array.from({ length: 20_000 }, () => crypto.randomUUID())

it.each([0, 0.01, 0.1, 0.5, 0.9, 1])('chooses a share of %d of the sessions', share => {
  const chosen = sessions.filter(session => isSampled(session, 'recording', share)).length / sessions.length
  expect(Math.abs(chosen - share)).toBeLessThan(0.015)
})

it('chooses independently for each purpose, and always the same', () => {
  const both = sessions.filter(id => isSampled(id, 'session', 0.5) && isSampled(id, 'recording', 0.5)).length
  expect(both / sessions.length).toBeCloseTo(0.25, 1)
  expect(isSampled('s', 'session', 0.5)).toBe(isSampled('s', 'session', 0.5))
})
