import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Condition, describeCondition, parseCondition, whereOf, whereText, whereWith } from './where.ts'

describe('a typed condition', () => {
  it.each<[string, Condition]>([
    ['http.route=/cart', ['http.route', '=', '/cart']],
    [' http.route = /a=b ', ['http.route', '=', '/a=b']],
    ['user=', ['user', '=', '']],
    ['status != 200', ['status', '!=', '200']],
    ['status≠200', ['status', '!=', '200']],
    ['status>=500', ['status', '>=', '500']],
    ['ms<1e3', ['ms', '<', '1e3']],
    ['route~cart', ['route', 'contains', 'cart']],
    ['user.id exists', ['user.id', 'exists']],
    ['user.id absent', ['user.id', 'absent']],
    ['!user.id', ['user.id', 'absent']],
  ])('%s', (text, condition) => {
    expect(parseCondition(text)).toEqual(condition)
    expect(whereOf(new URLSearchParams({ where: whereText([condition]) ?? '' }))).toEqual([condition])
  })

  it.each([
    ['http.route', /needs a value/],
    ['=x', /key before/],
    ['status>high', /compares numbers/],
    ['status>', /compares numbers/],
    ['route~', /contains/],
  ])('refuses %s', (text, fault) => {
    expect(parseCondition(text)).toEqual({ fault: expect.stringMatching(fault) })
  })
})

describe('conditions of an address', () => {
  it('are those that were added, each once, and at most eight', () => {
    const condition = fc.tuple(fc.string({ minLength: 1 }), fc.constantFrom('=', '!='), fc.string())
    fc.assert(
      fc.property(fc.array(condition, { maxLength: 12 }), conditions => {
        let query = new URLSearchParams()
        for (const one of conditions) query = new URLSearchParams({ where: whereWith(query, one) ?? '' })
        const distinct = [
          ...new Map([...conditions].reverse().map(one => [JSON.stringify(one), one])).values(),
        ].reverse()
        expect(whereOf(query)).toEqual(distinct.slice(-8))
      }),
    )
  })

  it('are none where it has been changed by hand', () => {
    for (const where of ['x', '{}', '1', 'null', '[1]', '[[1,2]]', '[["a"]]']) {
      expect(whereOf(new URLSearchParams({ where })), where).toEqual([])
    }
  })

  it('are shown in words', () => {
    expect(describeCondition(['status', '!=', '200'])).toBe('status ≠ 200')
    expect(describeCondition(['user', '=', ''])).toBe('user = (empty)')
    expect(describeCondition(['user', 'absent'])).toBe('user is absent')
  })
})
