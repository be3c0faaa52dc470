import fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { cutPage, decodeCursor, encodeCursor } from './cursor.ts'

const schema = z.tuple([z.int().min(0), z.string()]).transform(([createdAtMs, id]) => ({ createdAtMs, id }))
const decode = (text: string | undefined) => decodeCursor(schema, text)
const INVALID = {
  ok: false,
  problem: { code: 'REQUEST_INVALID', message: 'cursor is invalid: start again without it' },
}

it('decodes what it has encoded, as text that needs no escaping in a URL', () => {
  fc.assert(
    fc.property(fc.nat(), fc.string({ unit: 'grapheme' }), (createdAtMs, id) => {
      const text = encodeCursor([createdAtMs, id])
      expect(text).toMatch(/^[\w-]+$/)
      expect(decode(text)).toEqual({ ok: true, value: { createdAtMs, id } })
    }),
  )
})

it('decodes the cursors that earlier releases have returned', () => {
  expect(decode('WzE3MDAwMDAwMDAwMDAsInNyZl8xIl0')).toEqual({
    ok: true,
    value: { createdAtMs: 1_700_000_000_000, id: 'srf_1' },
  })
})

it('returns no cursor for the first page', () => {
  expect(decode(undefined)).toEqual({ ok: true, value: undefined })
})

it.each([
  ['empty', ''],
  ['not JSON', Buffer.from('{').toString('base64url')],
  ['a cursor of another list', encodeCursor([1, 2, 3])],
  ['out of range', encodeCursor([-1, 'srf_1'])],
])('refuses a cursor that is %s', (_, text) => {
  expect(decode(text)).toEqual(INVALID)
})

it('cuts a page, and returns a cursor only if there is one more entry', () => {
  const cursorOf = (last: number) => encodeCursor([last])
  expect(cutPage([1, 2, 3], 2, cursorOf)).toEqual({ shown: [1, 2], nextCursor: cursorOf(2) })
  expect(cutPage([1, 2], 2, cursorOf)).toEqual({ shown: [1, 2], nextCursor: null })
  expect(cutPage([], 2, cursorOf)).toEqual({ shown: [], nextCursor: null })
})
