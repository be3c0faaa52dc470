import { expect, it } from 'vitest'
import { TimeBudgets } from './time-budgets.ts'

it('refills the budget of an owner over a minute, after its debt is paid', () => {
  let nowMs = 0
  const budgets = new TimeBudgets(20_000, () => nowMs)
  expect(budgets.hasTime('a')).toBe(true)
  budgets.spend('a', 19_999)
  expect(budgets.hasTime('a')).toBe(true)
  budgets.spend('a', 20_001)
  expect(budgets.hasTime('a')).toBe(false)
  expect(budgets.hasTime('b')).toBe(true)
  nowMs = 60_000
  expect(budgets.hasTime('a')).toBe(false)
  nowMs = 60_001
  expect(budgets.hasTime('a')).toBe(true)
  nowMs = 10 * 60_000
  budgets.spend('a', 20_000)
  expect(budgets.hasTime('a')).toBe(false)
})
