import { expect, it } from 'vitest'
import { z } from 'zod'
import { listOf } from './fields.ts'

it('refuses a list that is too long without looking at its entries', () => {
  let looked = 0
  const entry = z.custom<string>(value => {
    looked++
    return typeof value === 'string'
  }, 'must be a string')
  const list = listOf(entry, 2, 'must be an array')
  const messagesOf = (value: unknown) => list.safeParse(value).error?.issues.map(({ message }) => message)

  expect(messagesOf(Array.from({ length: 100_000 }, () => 1))).toEqual(['must have at most 2 items'])
  expect(looked).toBe(0)
  expect(messagesOf(['a', 1])).toEqual(['must be a string'])
  expect(messagesOf('a')).toEqual(['must be an array'])
  expect(list.parse(['a', 'b'])).toEqual(['a', 'b'])
})
