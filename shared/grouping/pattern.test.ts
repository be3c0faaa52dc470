import fc from 'fast-check'
import { expect, it } from 'vitest'
import { leastCpuMs } from '../../test/support/least-cpu-ms.ts'
import { compilePattern } from './pattern.ts'

it('matches whole texts, with any text for a star', () => {
  const matches = (pattern: string, text: string) => compilePattern(pattern)(text)
  expect(matches('TypeError', 'TypeError')).toBe(true)
  expect(matches('TypeError', 'TypeErrors')).toBe(false)
  expect(matches('*Error', 'TypeError')).toBe(true)
  expect(matches('connect*10.0.0.*', 'connect ECONNREFUSED\n10.0.0.7:5432')).toBe(true)
  expect(matches('*', '')).toBe(true)
  expect(matches('a*a', 'a')).toBe(false)
  expect(matches('a*b*c', 'abbc')).toBe(true)
  expect(matches('a*bc*c', 'abc')).toBe(false)
  // Nothing else is special.
  expect(matches('a.c', 'abc')).toBe(false)
  expect(matches('[a-z]+?', '[a-z]+?')).toBe(true)
})

it('matches what a regular expression would', () => {
  const texts = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.', '\n'), maxLength: 12 })
  fc.assert(
    fc.property(texts, texts, (pattern, text) => {
      const parts = pattern.split('*').map(part => part.replaceAll('.', '\\.'))
      expect(compilePattern(pattern)(text)).toBe(new RegExp(`^${parts.join('[^]*')}$`).test(text))
    }),
    { numRuns: 3_000 },
  )
})

it('takes time linear in the text for any pattern', () => {
  const text = 'a'.repeat(1_000_000)
  for (const pattern of [
    `*${'a'.repeat(99)}b*${'a'.repeat(99)}`,
    `${'*a'.repeat(100)}b*`,
    `*${'ab'.repeat(50)}*`,
    `a*${'a'.repeat(190)}b*a`,
  ]) {
    const matches = compilePattern(pattern)
    expect(
      leastCpuMs(() => expect(matches(text)).toBe(false), 100),
      pattern,
    ).toBeLessThan(100)
  }
})
