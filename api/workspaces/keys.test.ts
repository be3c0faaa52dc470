import { hkdfSync } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isWellFormedKey } from '../../shared/ids/credentials.ts'
import { deriveWorkspaceKey } from './keys.ts'

const PEPPER = 'a pepper of more than thirty-two bytes'
const SALT = '5a'.repeat(32)
const REQUEST = { workspaceId: 'ws_1', userId: 'user_1', idempotencyKey: '0af76519-16cd-43dd-8448-eb211c80319c' }
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

it('derives the same well-formed key for the same pepper, salt and request', () => {
  const key = deriveWorkspaceKey(PEPPER, SALT, REQUEST)
  expect(isWellFormedKey('workspace', key)).toBe(true)
  expect(deriveWorkspaceKey(PEPPER, SALT, { ...REQUEST })).toBe(key)
})

it('uses HKDF-SHA-256 and skips bytes above 247', () => {
  const info = JSON.stringify(['penstock workspace key', ...Object.values(REQUEST)])
  const bytes = [...new Uint8Array(hkdfSync('sha256', PEPPER, Buffer.from(SALT, 'hex'), info, 64))]
  const characters = bytes.filter(byte => byte < 248).map(byte => BASE62[byte % 62])
  expect(deriveWorkspaceKey(PEPPER, SALT, REQUEST).slice(3, 35)).toBe(characters.slice(0, 32).join(''))
})

it('derives another key for any other pepper, salt, workspace, user or idempotency key', () => {
  const made = fc.record({
    pepper: fc.constantFrom(PEPPER, `${PEPPER}!`),
    salt: fc.constantFrom(SALT, '5b'.repeat(32)),
    workspaceId: fc.constantFrom('ws_1', 'ws_1"', 'ws_2'),
    userId: fc.string({ minLength: 1, maxLength: 200, unit: 'grapheme' }).filter(id => Buffer.byteLength(id) <= 800),
    idempotencyKey: fc.constantFrom(REQUEST.idempotencyKey, 'ffffffff-16cd-43dd-8448-eb211c80319c'),
  })
  fc.assert(
    fc.property(made, made, (a, b) => {
      const same = Object.keys(a).every(name => a[name as keyof typeof a] === b[name as keyof typeof b])
      const [first, second] = [a, b].map(({ pepper, salt, ...request }) => deriveWorkspaceKey(pepper, salt, request))
      expect(first === second).toBe(same)
    }),
  )
})

it('uses every character about equally often', () => {
  const counts = new Map<string, number>()
  const KEYS = 2_000
  for (let i = 0; i < KEYS; i++) {
    const key = deriveWorkspaceKey(PEPPER, SALT, { ...REQUEST, userId: `user_${i}` })
    for (const character of key.slice(3, 35)) counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  // If all bytes were taken modulo 62, the first eight characters would be a fifth more frequent: seven deviations.
  const expected = (KEYS * 32) / 62
  const deviation = Math.sqrt(expected)
  expect(counts.size).toBe(62)
  for (const [character, count] of counts) expect(Math.abs(count - expected), character).toBeLessThan(5 * deviation)
})
