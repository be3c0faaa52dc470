import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dataText, quotedText } from './data-text.ts'
import { fitAnswer } from './fit-answer.ts'

describe('an answer to an agent', () => {
  it('is shown whole if it fits', () => {
    const answer = { nextCursor: 'x'.repeat(500), logs: [{ body: 'a\nb', attributes: { a: '1' } }] }
    expect(fitAnswer(answer, 2_000)).toEqual({ answer, cut: [] })
  })

  it('cuts texts first, then lists within entries, then the ends of lists, and names each cut', () => {
    const texts = fitAnswer({ logs: [{ body: 'x'.repeat(5_000) }, { body: 'short' }] }, 1_500)
    expect(texts.answer).toEqual({ logs: [{ body: `${'x'.repeat(600)}… [4400 more characters]` }, { body: 'short' }] })
    expect(texts.cut).toEqual(['texts are cut after 600 characters'])
    const attributes = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, 'v']))
    const items = fitAnswer({ logs: [{ attributes }] }, 300)
    expect(items.cut).toEqual(['lists and objects within an entry are cut after 24 items'])
    const ends = fitAnswer({ ids: Array.from({ length: 100 }, (_, i) => `id ${i}`) }, 100)
    expect(ends.cut[0]).toMatch(/^ids: the first \d+ of 100 are shown; /)
  })

  it('never has more characters than its limit, nor anything that cannot be seen', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 8, stringUnit: 'binary' }), { maxLength: 50 }), entries => {
        const { answer } = fitAnswer({ entries }, 400)
        const json = JSON.stringify(answer)
        expect(json.length).toBeLessThanOrEqual(400)
        for (const text of textsOf(answer)) expect(text).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/u)
      }),
    )
  })

  it('writes out what cannot be seen, and keeps lines of a list apart', () => {
    expect(dataText('a\u202eb\u200b\ufe0f\u{e0041}\r\nc\u0000', 100)).toBe(
      'a\\u{202e}b\\u{200b}\\u{fe0f}\\u{e0041}\nc\\u{0}',
    )
    expect(quotedText('GET "x"\n  +0 1 "fake"', 100)).toBe('"GET \\"x\\" +0 1 \\"fake\\""')
  })
})

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return [...Object.keys(value), ...Object.values(value).flatMap(textsOf)]
}
