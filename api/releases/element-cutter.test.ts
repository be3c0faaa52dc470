import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { ElementCutter } from './element-cutter.ts'

const ENDLESS = { limit: Number.POSITIVE_INFINITY, limitBytes: Number.POSITIVE_INFINITY, elementLimitBytes: 1_000_000 }

function cut(text: Buffer, pieceBytes: number, options: Partial<ConstructorParameters<typeof ElementCutter>[0]> = {}) {
  const cutter = new ElementCutter({ ...ENDLESS, ...options })
  const elements: unknown[] = []
  for (let at = options.offset ?? 0; at < text.length && !cutter.isDone; at += pieceBytes) {
    elements.push(...cutter.push(text.subarray(at, at + pieceBytes)).map(element => JSON.parse(element.toString())))
  }
  return { elements, end: cutter.endOffset, isLast: cutter.isLast, isDone: cutter.isDone }
}

/** Strings that look like JSON structure. */
const text = fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', 'a', 'ü', '😀', '\n', '\u2028') })
const element = fc.dictionary(text, fc.oneof(text, fc.integer(), fc.jsonValue({ maxDepth: 2 })))
const manifest = fc.record({ slug: text, sequence: fc.nat(), files: fc.array(element), completedAt: text })

it('finds the same elements as JSON.parse, page by page, wherever chunks end', () => {
  fc.assert(
    fc.property(
      manifest,
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(0, 2),
      (value, pieceBytes, limit, indent) => {
        const bytes = Buffer.from(JSON.stringify(value, undefined, indent))
        const found: unknown[] = []
        let offset: number | undefined
        for (;;) {
          const page = cut(bytes, pieceBytes, { limit, offset })
          expect(page.isDone).toBe(true)
          found.push(...page.elements)
          if (page.isLast) break
          expect(page.elements).toHaveLength(limit)
          offset = page.end
        }
        expect(found).toEqual(JSON.parse(JSON.stringify(value.files)))
      },
    ),
  )
})

it('recognizes the last page by the end of the array, even if the page is full', () => {
  const bytes = Buffer.from('{"files":[{"a":1},{"b":2}],"x":[{}]}')
  expect(cut(bytes, 7, { limit: 2 })).toMatchObject({ elements: [{ a: 1 }, { b: 2 }], isLast: true })
  expect(cut(bytes, 7, { limit: 1 })).toMatchObject({ elements: [{ a: 1 }], isLast: false, end: 17 })
  expect(cut(Buffer.from('{"files":[]}'), 1)).toMatchObject({ elements: [], isLast: true })
})

it('limits the bytes of a page, but always returns one element', () => {
  const bytes = Buffer.from('[{"a":1},{"b":2},{"c":3}]')
  expect(cut(bytes, 3, { limitBytes: 8 })).toMatchObject({ elements: [{ a: 1 }, { b: 2 }], isLast: false })
  expect(cut(bytes, 3, { limitBytes: 1 })).toMatchObject({ elements: [{ a: 1 }], isLast: false })
})

it('is not done when the text ends inside the array', () => {
  const whole = '{"files":[{"a":"]"},{"b":2}]'
  for (let length = 0; length < whole.length; length++) {
    expect(cut(Buffer.from(whole.slice(0, length)), 5).isDone).toBe(false)
  }
  expect(cut(Buffer.from(whole), 5).isDone).toBe(true)
})

it('throws when an element exceeds its limit', () => {
  const bytes = Buffer.from(`[{"a":"${'x'.repeat(5_000)}`)
  expect(() => cut(bytes, 100, { elementLimitBytes: 1_000 })).toThrow(PermanentError)
  expect(() => cut(bytes, 10_000, { elementLimitBytes: 1_000 })).toThrow(PermanentError)
})
