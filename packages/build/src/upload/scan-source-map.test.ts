import { hash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { deriveDebugId } from './prepare-maps.ts'
import { debugIdEdits, edited, scanSourceMap } from './scan-source-map.ts'

const ID = '85314830-023f-4cf1-a267-535f4e37bb17'
const OTHER = '11111111-2222-4333-8444-555555555555'
const scan = (text: string) => scanSourceMap(Buffer.from(text))

function inject(text: string, debugId: string): string {
  const map = Buffer.from(text)
  const scanned = scanSourceMap(map)
  if (!scanned.ok) throw new Error(scanned.reason)
  return Buffer.concat(edited(map, debugIdEdits(scanned, debugId))).toString()
}

const mapText = fc
  .tuple(
    fc.dictionary(
      fc.string().filter(key => !['version', 'debugId', 'debug_id', '__proto__'].includes(key)),
      fc.jsonValue(),
    ),
    fc.string(),
    fc.option(fc.constantFrom('debugId', 'debug_id'), { nil: undefined }),
    fc.constantFrom(undefined, 1, '\t'),
  )
  .map(([rest, mappings, field, indent]) => {
    const map = { ...rest, version: 3, mappings, ...(field && { [field]: OTHER }) }
    return { map, text: JSON.stringify(map, undefined, indent) }
  })

it('a map with another debug id is otherwise the same JSON, and the id is found again', () => {
  fc.assert(
    fc.property(mapText, fc.uuid(), ({ text }, id) => {
      const injected = JSON.parse(inject(text, id))
      const { debugId, debug_id, ...rest } = injected
      expect(debugId ?? debug_id).toBe(id)
      const { debugId: _, debug_id: __, ...before } = JSON.parse(text)
      expect(rest).toEqual(before)
      expect(scan(JSON.stringify(injected))).toMatchObject({ ok: true, debugId: id })
      expect(inject(inject(text, id), id)).toBe(inject(text, id))
    }),
  )
})

it('takes for JSON what JSON.parse takes, apart from the inside of strings', () => {
  const around = (text: string) => `{"version":3,"mappings":"","x":${text}}`
  const isJson = (text: string) => {
    try {
      JSON.parse(text)
      return true
    } catch {
      return false
    }
  }
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\""',
    '1',
    '-0.5e3',
    '01',
    'true',
    'null',
    'nul',
    ' ',
    '-',
    '1.',
  )
  fc.assert(
    fc.property(fc.array(token, { maxLength: 8 }), tokens => {
      const text = around(tokens.join(''))
      expect([text, scan(text).ok]).toEqual([text, isJson(text)])
    }),
    { numRuns: 2_000 },
  )
})

it.each([
  ['[]', 'it is not a JSON object'],
  ['<!doctype html>', 'it is not a JSON object'],
  ['', 'it is not a JSON object'],
  ['{}', 'its version is not 3'],
  ['{"version":2,"mappings":""}', 'its version is not 3'],
  ['{"version":3}', 'it has neither mappings nor sections'],
  ['{"version":3,"mappings":7}', 'it has neither mappings nor sections'],
  ['{"version":3,"mappings":"AAAA', 'it is not valid JSON'],
  ['{"version":3,"mappings":""} x', 'it is not valid JSON'],
  [`{"version":3,"mappings":"","x":${'['.repeat(100_000)}`, 'it is not valid JSON'],
])('refuses %.40j', (text, reason) => {
  expect(scan(text)).toEqual({ ok: false, reason })
})

it('takes index maps, both names of the field, escaped names, and prefers debugId', () => {
  expect(scan('{"version":3,"sections":[]}')).toMatchObject({ ok: true })
  expect(scan(`{"version":3,"mappings":"","debug_id":"${ID.toUpperCase()}"}`)).toMatchObject({ debugId: ID })
  expect(scan(`{"version":3,"mappings":"","debug\\u0049d":"${ID}"}`)).toMatchObject({ debugId: ID })
  expect(scan(`{"debug_id":"${OTHER}","version":3,"mappings":"","debugId":"${ID}"}`)).toMatchObject({ debugId: ID })
  expect(scan('{"version":3,"mappings":"","debugId":null}')).not.toHaveProperty('debugId')
  expect(JSON.parse(inject('{"version":3,"mappings":"","debugId":null}', ID)).debugId).toBe(ID)
})

it.each([['\ufeff'], [")]}'\n"], ["\ufeff)]}', x\n \t"]])('takes a map after %j, and keeps that', before => {
  expect(inject(`${before}{"version":3,"mappings":""}`, ID)).toBe(
    `${before}{"version":3,"mappings":"","debugId":"${ID}"}`,
  )
  const other = inject(`${before}{"version":3,"mappings":"","debugId":"${OTHER}"}`, ID)
  expect(other).toBe(`${before}{"version":3,"mappings":"","debugId":"${ID}"}`)
})

it('derives the same UUID of version 8 from the same digest, and another from others', () => {
  expect(deriveDebugId(hash('sha256', 'a', 'buffer'))).toBe(deriveDebugId(hash('sha256', 'a', 'buffer')))
  expect(deriveDebugId(hash('sha256', 'a', 'buffer'))).not.toBe(deriveDebugId(hash('sha256', 'b', 'buffer')))
  expect(deriveDebugId(hash('sha256', 'a', 'buffer'))).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
})
