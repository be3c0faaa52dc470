import { expect, it } from 'vitest'
import { durationSchema, nameSchema, printable, rowOf } from './terminal.ts'

it.each([
  ['90s', 90],
  ['15m', 900],
  ['1h', 3_600],
  ['30d', 2_592_000],
  ['36500d', 3_153_600_000],
])('%s is %d seconds', (text, seconds) => {
  expect(durationSchema.parse(text)).toBe(seconds)
})

it.each(['', '0s', '-1h', '1', 'h', '1w', '1.5h', ' 1h', '1h ', '01h', '36501d', '99999999999d'])(
  '%j is not a duration',
  text => {
    expect(durationSchema.safeParse(text).success).toBe(false)
  },
)

it('a name is not empty and contains no control characters', () => {
  for (const name of ['a', 'ü', '人'.repeat(120)]) expect(nameSchema.safeParse(name).success, name).toBe(true)
  for (const name of ['', 'a\n', '\u001b[31m', '\u0000', '\ud800', 'x'.repeat(121)]) {
    expect(nameSchema.safeParse(name).success, JSON.stringify(name)).toBe(false)
  }
})

it('escapes characters that would control the terminal', () => {
  expect(printable('a\u001b[31m\u009b\u202e\u2028ü')).toBe('a\\u{1b}[31m\\u{9b}\\u{202e}\\u{2028}ü')
  expect(rowOf(['a\n', 'bc', ''], [8, 4, 4])).toBe('a\\u{a}    bc')
})
