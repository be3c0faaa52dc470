import { hkdfSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isWellFormedKey } from '../../schemas/records/key-form.ts'
import { deriveKey } from './keys.ts'

const PEPPER = 'a pepper of more than thirty-two bytes'
const SALT = '5a'.repeat(32)
const CREATION = { workspaceId: 'ws_1', id: '0af76519' }
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

it.each(['workspace', 'secret', 'public'] as const)(
  'derives the same well-formed %s key for the same pepper, salt and creation',
  kind => {
    const key = deriveKey(kind, PEPPER, SALT, CREATION)
    expect(isWellFormedKey(kind, key)).toBe(true)
    expect(deriveKey(kind, PEPPER, SALT, { ...CREATION })).toBe(key)
  },
)

it('uses HKDF-SHA-256 and skips bytes above 247', () => {
  const info = JSON.stringify(['penstock key', 'workspace', ...Object.values(CREATION)])
  const bytes = [...new Uint8Array(hkdfSync('sha256', PEPPER, Buffer.from(SALT, 'hex'), info, 64))]
  const characters = bytes.filter(byte => byte < 248).map(byte => BASE62[byte % 62])
  expect(deriveKey('workspace', PEPPER, SALT, CREATION).slice(3, 35)).toBe(characters.slice(0, 32).join(''))
})

it('derives another key for any other kind, pepper, salt, workspace or creation', () => {
  const made = fc.record({
    kind: fc.constantFrom('workspace' as const, 'secret' as const),
    pepper: fc.constantFrom(PEPPER, `${PEPPER}!`),
    salt: fc.constantFrom(SALT, '5b'.repeat(32)),
    workspaceId: fc.constantFrom('ws_1', 'ws_1"', 'ws_2'),
    id: fc.constantFrom(CREATION.id, 'ffffffff'),
  })
  fc.assert(
    fc.property(made, made, (a, b) => {
      const same = Object.keys(a).every(name => a[name as keyof typeof a] === b[name as keyof typeof b])
      const [first, second] = [a, b].map(({ kind, pepper, salt, ...creation }) =>
        deriveKey(kind, pepper, salt, creation).slice(3, 35),
      )
      expect(first === second).toBe(same)
    }),
  )
})

it('uses every character about equally often', () => {
  const counts = new Map<string, number>()
  const KEYS = 2_000
  for (let i = 0; i < KEYS; i++) {
    const key = deriveKey('workspace', PEPPER, SALT, { ...CREATION, id: `${i}` })
    for (const character of key.slice(3, 35)) counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  // If all bytes were taken modulo 62, the first eight characters would be a fifth more frequent: seven deviations.
  const expected = (KEYS * 32) / 62
  const deviation = Math.sqrt(expected)
  expect(counts.size).toBe(62)
  for (const [character, count] of counts) expect(Math.abs(count - expected), character).toBeLessThan(5 * deviation)
})
