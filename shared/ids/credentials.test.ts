import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isWellFormedKey, KEY_LENGTH, type KeyKind } from '../../schemas/records/key-form.ts'
import { digestOf, generateKey } from './credentials.ts'

const KINDS: KeyKind[] = ['public', 'secret', 'workspace']

it('makes keys of the documented form that only their own kind accepts', () => {
  for (const kind of KINDS) {
    const key = generateKey(kind)
    expect(key).toMatch(/^(pk|sk|wk)_[0-9A-Za-z]{38}$/)
    expect(key).toHaveLength(KEY_LENGTH)
    expect(KINDS.filter(other => isWellFormedKey(other, key))).toEqual([kind])
  }
})

it('refuses a key with any one character changed', () => {
  fc.assert(
    fc.property(fc.nat(KEY_LENGTH - 1), fc.constantFrom(...'0aZ_-é'), (position, replacement) => {
      const key = generateKey('secret')
      fc.pre(key[position] !== replacement)
      expect(isWellFormedKey('secret', key.slice(0, position) + replacement + key.slice(position + 1))).toBe(false)
    }),
  )
})

it('digests with SHA-256 (FIPS 180-2 example)', () => {
  expect(digestOf('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})
