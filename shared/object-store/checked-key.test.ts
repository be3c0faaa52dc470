import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PermanentError } from '../runtime/errors.ts'
import { checkedObjectKey } from './checked-key.ts'
import { keyPart } from './object-keys.ts'

it.each([
  '',
  '.',
  '..',
  'a/../b',
  'a/.',
  './a',
  'a\u0000b',
  'a\nb',
  'a\u007F',
  'a\u0085',
  'a\u2028b',
  ' a',
  'a ',
  'a\u00A0',
  '\uFFFE',
  '\uD800',
  'ü'.repeat(513),
])('refuses %j', key => {
  expect(() => checkedObjectKey(key)).toThrow(PermanentError)
})

it.each(['a', 'a/b', 'a//b', '/a', 'a/', '...', 'a/.b', 'a/b..', 'ü 🚰+%', 'ü'.repeat(512)])('accepts %j', key => {
  expect(checkedObjectKey(key)).toBe(key)
})

/** Characters of all planes, including controls. `unit: 'binary'` generates the same but takes seconds. */
const codePoint = fc
  .integer({ min: 0, max: 0x10ffff })
  .map(code => String.fromCodePoint(code))
  .filter(text => text.isWellFormed())

it('accepts every key that is made of encoded parts', () => {
  const part = fc.string({ unit: codePoint, minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), parts => {
      const key = parts.map(keyPart).join('/')
      expect(checkedObjectKey(key)).toBe(key)
    }),
  )
})
