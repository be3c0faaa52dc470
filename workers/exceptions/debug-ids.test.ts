import { describe, expect, it } from 'vitest'
import { canonicalDebugId, readDebugIds } from './debug-ids.ts'

const ID = '85314830-023f-4cf1-a267-535f4e37bb17'

describe('debug ids', () => {
  it('are UUIDs in any case, with dashes or without', () => {
    for (const text of [ID, ID.toUpperCase(), ID.replaceAll('-', '')]) expect(canonicalDebugId(text)).toBe(ID)
    for (const text of ['', 'x', ID.slice(1), `${ID}0`, ID.replace('8', 'g'), '-'.repeat(36)]) {
      expect(canonicalDebugId(text)).toBeUndefined()
    }
  })

  it('are read from the JSON of a key-value list, without what is not one', () => {
    const text = JSON.stringify({ 'https://a.test/x.js': ID.toUpperCase(), b: 'nope', c: 7, '': ID, d: null })
    expect([...readDebugIds(text)]).toEqual([['https://a.test/x.js', ID]])
    expect([...readDebugIds(`{"__proto__":"${ID}"}`)]).toEqual([['__proto__', ID]])
    for (const broken of ['', '{', '[]', 'null', '"x"', `["${ID}"]`]) expect(readDebugIds(broken).size).toBe(0)
  })

  it('are at most a hundred', () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`s${i}`, ID]))
    expect(readDebugIds(JSON.stringify(many)).size).toBe(100)
    expect(readDebugIds(`{"${'x'.repeat(40_000)}":"${ID}"}`).size).toBe(0)
  })
})
