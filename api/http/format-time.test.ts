import { expect, it } from 'vitest'
import { millisecondsBetween, rfc3339FromUnixNano } from './format-time.ts'

it('formats RFC 3339 with nine decimals over the whole range of an unsigned 64-bit number', () => {
  expect(rfc3339FromUnixNano(1_700_000_000_000_000_042n)).toBe('2023-11-14T22:13:20.000000042Z')
  expect(rfc3339FromUnixNano(1_700_000_000_999_999_999n)).toBe('2023-11-14T22:13:20.999999999Z')
  expect(rfc3339FromUnixNano(0n)).toBe('1970-01-01T00:00:00.000000000Z')
  expect(rfc3339FromUnixNano(2n ** 64n - 1n)).toBe('2554-07-21T23:34:33.709551615Z')
})

it('keeps the fraction of a duration and returns 0 for a negative one', () => {
  expect(millisecondsBetween(10n, 1_500_010n)).toBe(1.5)
  expect(millisecondsBetween(1_700_000_000_000_000_000n, 1_700_000_000_000_000_001n)).toBe(0.000001)
  expect(millisecondsBetween(10n, 5n)).toBe(0)
})
