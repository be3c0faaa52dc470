import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { shownAnswer } from './outcome.ts'

describe('the answer that is shown', () => {
  it('has no secret, wherever the answer is cut off', () => {
    const secret = '/services/T0001/B0001/hidden-token'
    const forms = [secret, secret.replaceAll('/', '\\/'), encodeURIComponent(secret)]
    fc.assert(
      fc.property(fc.nat({ max: 60 }), fc.constantFrom(...forms), (before, form) => {
        const echoed = (' '.repeat(before) + form.repeat(200)).slice(0, 4_096)
        expect(shownAnswer(echoed, [secret])).toMatch(/^\*{900,1000}$/)
      }),
    )
  })

  it('has at most 1,000 characters, and no control characters except tabs and line breaks', () => {
    expect(shownAnswer(`\x1b[31m${'ü'.repeat(2_000)}`, [])).toBe(`[31m${'ü'.repeat(995)}`)
    expect(shownAnswer('a\tb\r\nc\0', [])).toBe('a\tb\nc')
    expect([shownAnswer('', []), shownAnswer(' \0 ', [])]).toEqual([undefined, undefined])
  })

  it('keeps words of an answer that a short text would hide', () => {
    expect(shownAnswer('invalid payload', ['', '/', 'a', 'invalid'])).toBe('invalid payload')
    expect(shownAnswer('ok', ['\ud800'.repeat(8)])).toBe('ok')
  })
})
