import { describe, expect, it } from 'vitest'
import { MapStart } from './map-start.ts'

/** Returns what is left of a text that arrives in pieces, or undefined if it is refused. */
function rest(text: string, pieceBytes: number): string | undefined {
  const bytes = Buffer.from(text)
  const start = new MapStart()
  const left: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes)
    const skipped = start.skip(piece)
    if (skipped < 0) return undefined
    left.push(piece.subarray(skipped))
  }
  return Buffer.concat(left).toString()
}

describe.each([1, 2, 3, 5, 1_000])('in chunks of %i bytes', pieceBytes => {
  it.each([
    ['nothing', '{}', '{}'],
    ['a byte order mark', '\ufeff{}', '{}'],
    ['a guard', ")]}'\n{}", '{}'],
    ['a guard with more on its line', ")]}', {x\r\n \n{}", ' \n{}'],
    ['both', "\ufeff)]}'\n{}", '{}'],
    ['a guard and no JSON', ")]}'", ''],
    ['one mark only', '\ufeff\ufeff{}', '\ufeff{}'],
    ['one guard only', ")]}'\n)]}'\n{}", ")]}'\n{}"],
    ['blanks', ' \n{}', ' \n{}'],
  ])('a map begins after %s', (_, text, expected) => {
    expect(rest(text, pieceBytes)).toBe(expected)
  })

  it.each([[')]}{}'], [')]{}'], ['){}'], ['\ufeff)]{}']])('refuses a part of a guard: %j', text => {
    expect(rest(text, pieceBytes)).toBeUndefined()
  })
})

it('refuses a part of a byte order mark, also across chunks', () => {
  const start = new MapStart()
  expect(start.skip(Buffer.from([0xef]))).toBe(1)
  expect(start.skip(Buffer.from('{}'))).toBe(-1)
})
