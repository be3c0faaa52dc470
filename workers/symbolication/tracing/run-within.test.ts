import { expect, it } from 'vitest'
import { runWithin } from './run-within.ts'

it('returns the result of work that ends in time, and throws its errors', () => {
  expect(runWithin(1_000, () => 7)).toEqual({ result: 7 })
  expect(() =>
    runWithin(1_000, () => {
      throw new TypeError('no')
    }),
  ).toThrow(TypeError)
})

it('interrupts work that catches every error and never ends', () => {
  const endless = () => {
    for (;;) {
      try {
        for (;;);
      } catch {
        // Babel and its callers catch errors too.
      }
    }
  }
  expect(runWithin(20, endless)).toBeUndefined()
  expect(runWithin(1_000, () => 'again')).toEqual({ result: 'again' })
})
