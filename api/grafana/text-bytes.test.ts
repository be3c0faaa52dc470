import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { TextBytes } from './text-bytes.ts'

it('has the bytes of all texts in their order', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), texts => {
      const out = new TextBytes()
      for (const text of texts) out.add(text)
      expect(Buffer.from(out.take()).toString()).toBe(texts.join(''))
    }),
  )
})

it('takes texts that are longer than a part, and many parts', () => {
  const out = new TextBytes()
  const texts = ['a', 'ü'.repeat(MIB), 'b', '🦀'.repeat(200_000), 'c'.repeat(3 * MIB)]
  for (const text of texts) out.add(text)
  expect(Buffer.from(out.take()).equals(Buffer.from(texts.join('')))).toBe(true)
})
