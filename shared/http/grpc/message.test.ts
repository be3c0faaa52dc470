import { expect, it } from 'vitest'
import { framed, messageProblem, timeoutMs } from './message.ts'

it.each([
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['10S', 10_000],
  ['250m', 250],
  ['1500u', 1.5],
  ['99999999n', 99.999999],
  ['', Number.POSITIVE_INFINITY],
  ['123456789m', Number.POSITIVE_INFINITY],
  ['1s', Number.POSITIVE_INFINITY],
])('reads the timeout "%s"', (text, ms) => {
  expect(timeoutMs(text)).toBeCloseTo(ms)
})

it('frames a message, which has no problem then', () => {
  for (const message of [undefined, new Uint8Array(), Buffer.from('some bytes')]) {
    const bytes = framed(message)
    expect(messageProblem(bytes, 'identity')).toBeUndefined()
    expect(bytes.subarray(5)).toEqual(Buffer.from(message ?? []))
  }
})
