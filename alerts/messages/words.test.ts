import { expect, it } from 'vitest'
import { duration, formatNumber, personName, quantity } from './words.ts'

it.each([
  [0, '0'],
  [1_234_567, '1,234,567'],
  [12.345, '12.35'],
  [-3, '-3'],
  [0.00012345, '0.000123'],
  [1e300, '1e+300'],
])('formats %d as %s', (value, text) => {
  expect(formatNumber(value)).toBe(text)
})

it('leaves out a unit that is empty', () => {
  expect(quantity(5, { unit: '' })).toBe('5')
  expect(quantity(5, { unit: 'ms' })).toBe('5 ms')
})

it('states durations in their largest whole unit', () => {
  expect([1, 5, 60, 90, 2_880].map(duration)).toEqual(['1 minute', '5 minutes', '1 hour', '90 minutes', '2 days'])
})

it('names a user by id if the name is unknown or cannot be seen', () => {
  expect(personName({ userId: 'user_7f3a' })).toBe('user_7f3a')
  expect(personName({ userId: 'user_7f3a', name: '\u202e' })).toBe('user_7f3a')
  expect(personName(null)).toBe('An operator')
})
