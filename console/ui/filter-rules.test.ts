import { expect, it } from 'vitest'
import { choiceOf, faultIn, MILLISECONDS, PAIRS, SPAN_ID, TRACE_ID, validQuery, WORDS } from './filter-rules.ts'

it.each([
  [PAIRS, 'http.response', '"http.response" needs a value: write http.response=value.'],
  [PAIRS, '=5', /needs a key/],
  [PAIRS, 'http.route=/a=b', undefined],
  [PAIRS, 'a=1, b', /"b" needs a value/],
  [PAIRS, 'a=1, b=2', undefined],
  [TRACE_ID, 'abc', 'A trace id has 32 hex digits, this has 3.'],
  [TRACE_ID, 'x'.repeat(32), /only hex digits/],
  [TRACE_ID, '0'.repeat(32), /cannot consist of zeros/],
  [TRACE_ID, ` ${'AB'.repeat(16)} `, undefined],
  [TRACE_ID, 'ab'.repeat(8), undefined],
  [SPAN_ID, 'ab', 'A span id has 16 hex digits, this has 2.'],
  [MILLISECONDS, 'abc', '"abc" is not a whole number of milliseconds: write 300.'],
  [MILLISECONDS, '1.5', /whole number/],
  [MILLISECONDS, '604800001', /a week/],
  [MILLISECONDS, '300', undefined],
  [WORDS, '--', /has no word/],
  [WORDS, 'a b c d e f g h i', 'At most 8 words are searched, these are 9.'],
  [WORDS, 'größe', undefined],
])('%o of "%s" is accepted, or its fault is stated', (rule, text, fault) => {
  const found = faultIn(rule, text)
  if (fault instanceof RegExp) expect(found).toMatch(fault)
  else expect(found).toBe(fault)
})

it('reads the parameters that their rules accept, and those without a rule', () => {
  const query = new URLSearchParams('attribute=a&trace=&minDurationMs=abc&service=x=&q=a&status=lost')
  const status = choiceOf([
    ['', 'Any'],
    ['open', 'Open'],
  ])
  const rules = { attribute: PAIRS, trace: TRACE_ID, minDurationMs: MILLISECONDS, status }
  expect(validQuery(query, rules).toString()).toBe('trace=&service=x%3D&q=a')
})
