import { expect, it } from 'vitest'
import { MINUTE_MS } from '../../schemas/units.ts'
import { RefilledBudgets } from './refilled-budgets.ts'

it('refills the budget of an owner over its time, after its debt is paid', () => {
  let nowMs = 0
  const budgets = new RefilledBudgets({ amount: 20_000, refillMs: 60_000 }, () => nowMs)
  expect(budgets.hasSome('a')).toBe(true)
  budgets.spend('a', 19_999)
  expect(budgets.hasSome('a')).toBe(true)
  budgets.spend('a', 20_001)
  expect(budgets.hasSome('a')).toBe(false)
  expect(budgets.hasSome('b')).toBe(true)
  nowMs = 60_000
  expect(budgets.hasSome('a')).toBe(false)
  nowMs = 60_001
  expect(budgets.hasSome('a')).toBe(true)
  nowMs = 10 * MINUTE_MS
  budgets.spend('a', 20_000)
  expect(budgets.hasSome('a')).toBe(false)
})
