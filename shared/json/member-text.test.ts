import fc from 'fast-check'
import { expect, it } from 'vitest'
import { memberText, nestingDepth } from './member-text.ts'

it('returns the member that JSON.parse finds', () => {
  const object = fc.dictionary(fc.constantFrom('traits', 'a', '"', '\\', 'tr"aits', '{}', '__proto__'), fc.jsonValue())
  fc.assert(
    fc.property(object, fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      const json = JSON.stringify(value, undefined, indent)
      const found = memberText(json, 'traits')
      if (!Object.hasOwn(value, 'traits')) expect(found).toBeUndefined()
      else expect(JSON.stringify(JSON.parse(found?.text as string))).toBe(JSON.stringify(value.traits))
    }),
  )
})

it('keeps details that parsing would lose', () => {
  const traits = '{ "id": 12345678901234567890, "rate": 1.0, "__proto__": {"a":1}, "2": 0, "1": 0 }'
  expect(memberText(`{"a":[1,{"traits":2}] , "tr\\u0061its" : ${traits} ,"b":1}`, 'traits')?.text).toBe(traits)
})

it('returns the last of two members with the same name', () => {
  expect(memberText('{"traits":1,"traits":{"a":"}"}}', 'traits')).toEqual({ text: '{"a":"}"}', depth: 1 })
})

it('returns how deeply the member is nested', () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
  expect(memberText(`{"x":1,"traits":${deep}}`, 'traits')?.depth).toBe(50_000)
  expect(memberText('{"traits":{}}', 'traits')?.depth).toBe(1)
  expect(memberText('{"traits": null }', 'traits')).toEqual({ text: 'null', depth: 0 })
})

it.each([
  ['1', 0],
  ['"[{"', 0],
  ['"a\\"[["', 0],
  ['{}', 1],
  ['{"[": ["]", {"a": []}], "b": [[]]}', 4],
])('finds how deep %s is nested', (json, depth) => {
  JSON.parse(json)
  expect(nestingDepth(json)).toBe(depth)
})
