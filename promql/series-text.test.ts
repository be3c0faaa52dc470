import { expect, it } from 'vitest'
import { parseSelector } from './parse-promql.ts'
import { seriesText } from './series-text.ts'

it.each([
  [{ __name__: 'up' }, 'up'],
  [{}, '{}'],
  [{ route: '/a' }, '{route="/a"}'],
  [{ __name__: 'up', 'service.name': 'shop', code: '5"x\n' }, 'up{code="5\\"x\\n", "service.name"="shop"}'],
  [{ __name__: 'http.requests', code: '500' }, '{"http.requests", code="500"}'],
])('writes %j as %s', (labels, text) => {
  expect(seriesText(new Map(Object.entries(labels)))).toBe(text)
})

it('writes what selects the series', () => {
  const labels = { __name__: 'http.requests', 'service.name': 'a\\b"c', code: '500' }
  const { matchers } = parseSelector(seriesText(new Map(Object.entries(labels))))
  expect(Object.fromEntries(matchers.map(({ label, value }) => [label, value]))).toEqual(labels)
})
