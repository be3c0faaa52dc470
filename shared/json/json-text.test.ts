import fc from 'fast-check'
import { expect, it } from 'vitest'
import { JsonText, stringifyWithTexts } from './json-text.ts'

it('keeps texts exactly as they are written', () => {
  const text = '{"2":9007199254740993, "1":1.0, "__proto__":{"a":$&}, "a":"\\ud800"}'.replace('$&', '"$&"')
  expect(stringifyWithTexts({ a: [new JsonText(text), 1], b: new JsonText('null') })).toBe(`{"a":[${text},1],"b":null}`)
})

it('is JSON.stringify for values without texts, and equal to it for the texts of values', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (plain, inner) => {
      expect(stringifyWithTexts(plain)).toBe(JSON.stringify(plain))
      const withText = stringifyWithTexts({ plain, inner: new JsonText(JSON.stringify(inner)) })
      expect(withText).toBe(JSON.stringify({ plain, inner }))
    }),
  )
})
