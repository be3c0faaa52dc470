import { hkdfSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isWellFormedKey } from '../../shared/ids/credentials.ts'
import { deriveWorkspaceKey } from './derive-workspace-key.ts'

const PEPPER = 'a pepper of more than thirty-two bytes'
const SALT = '5a'.repeat(32)
const ORIGIN = { workspaceId: 'ws_1', userId: 'user_1', idempotencyKey: '0af76519-16cd-43dd-8448-eb211c80319c' }
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

it('is well formed, and the same for the same pepper, salt and origin', () => {
  const key = deriveWorkspaceKey(PEPPER, SALT, ORIGIN)
  expect(isWellFormedKey('workspace', key)).toBe(true)
  expect(deriveWorkspaceKey(PEPPER, SALT, { ...ORIGIN })).toBe(key)
})

it('is HKDF-SHA-256 whose bytes above 247 are left out', () => {
  const info = JSON.stringify(['penstock workspace key', ...Object.values(ORIGIN)])
  const bytes = [...new Uint8Array(hkdfSync('sha256', PEPPER, Buffer.from(SALT, 'hex'), info, 64))]
  const characters = bytes.filter(byte => byte < 248).map(byte => BASE62[byte % 62])
  expect(deriveWorkspaceKey(PEPPER, SALT, ORIGIN).slice(3, 35)).toBe(characters.slice(0, 32).join(''))
})

it('is another for any other pepper, salt, workspace, user or idempotency key', () => {
  const made = fc.record({
    pepper: fc.constantFrom(PEPPER, `${PEPPER}!`),
    salt: fc.constantFrom(SALT, '5b'.repeat(32)),
    workspaceId: fc.constantFrom('ws_1', 'ws_1"', 'ws_2'),
    userId: fc.string({ minLength: 1, maxLength: 200, unit: 'grapheme' }).filter(id => Buffer.byteLength(id) <= 800),
    idempotencyKey: fc.constantFrom(ORIGIN.idempotencyKey, 'ffffffff-16cd-43dd-8448-eb211c80319c'),
  })
  fc.assert(
    fc.property(made, made, (a, b) => {
      const same = Object.keys(a).every(name => a[name as keyof typeof a] === b[name as keyof typeof b])
      const [first, second] = [a, b].map(({ pepper, salt, ...origin }) => deriveWorkspaceKey(pepper, salt, origin))
      expect(first === second).toBe(same)
    }),
  )
})

it('has every character about as often as any other', () => {
  const counts = new Map<string, number>()
  const KEYS = 2_000
  for (let i = 0; i < KEYS; i++) {
    const key = deriveWorkspaceKey(PEPPER, SALT, { ...ORIGIN, userId: `user_${i}` })
    for (const character of key.slice(3, 35)) counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  // With bytes taken modulo 62 the first eight characters would come a fifth more often than expected: seven deviations.
  const expected = (KEYS * 32) / 62
  const deviation = Math.sqrt(expected)
  expect(counts.size).toBe(62)
  for (const [character, count] of counts) expect(Math.abs(count - expected), character).toBeLessThan(5 * deviation)
})
