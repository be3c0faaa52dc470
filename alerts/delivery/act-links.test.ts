import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DAY_MS } from '../../schemas/units.ts'
import { ActLinks } from './act-links.ts'

const [key, otherKey] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
const subject = {
  workspaceId: 'ws_5f2c0a9b1e3d4c6a7f80',
  findingId: `fnd_${'a'.repeat(26)}`,
  receiverId: 'rcv_5f2c0a9b1e3d4c6a7f80',
}
const NOW = 1_790_000_000_000

const links = new ActLinks({ key }, 'https://penstock.example')
const tokenOf = (of: ActLinks, more: Partial<typeof subject> = {}) =>
  new URL(of.linkTo({ ...subject, ...more }, NOW) ?? '').searchParams.get('token') ?? ''
const token = tokenOf(links)

it('makes a short link that opens to what it was made for, for seven days', () => {
  const link = links.linkTo(subject, NOW) ?? ''
  expect(link).toBe(`https://penstock.example/console/act?token=${token}`)
  expect(token.length).toBeLessThan(200)
  expect(links.open(token, NOW)).toEqual({ ...subject, madeAtMs: NOW })
  expect(links.open(token, NOW + 7 * DAY_MS - 1)).toBeDefined()
  expect(links.open(token, NOW + 7 * DAY_MS)).toBeUndefined()
})

it('does not open a token that was changed in any place', () => {
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.string({ maxLength: 3 }), (at, text) => {
      const changed = token.slice(0, at) + text + token.slice(at + 1)
      expect(links.open(changed, NOW) === undefined).toBe(changed !== token)
    }),
  )
  const parts = token.split('.')
  const others = ['2', 'ws_1', `fnd_${'b'.repeat(26)}`, `rcv_${'0'.repeat(20)}`, 'zzzzzzzz']
  for (const [i, other] of others.entries()) expect(links.open(parts.with(i, other).join('.'), NOW)).toBeUndefined()
})

it('opens nothing else, however long it is', () => {
  for (const text of [
    '',
    '.',
    '1.....',
    token + token,
    `${token}.`,
    ` ${token}`,
    `${token}\n`,
    'a'.repeat(1_000_000),
  ]) {
    expect(links.open(text, NOW)).toBeUndefined()
  }
  fc.assert(fc.property(fc.string({ unit: 'binary' }), text => links.open(text, NOW) === undefined))
})

it('opens with the key before the current one, and makes links with the current one', () => {
  const rotated = new ActLinks({ key: otherKey, previousKey: key }, 'https://penstock.example')
  expect(rotated.open(token, NOW)).toEqual({ ...subject, madeAtMs: NOW })
  expect(new ActLinks({ key: otherKey }, undefined).open(token, NOW)).toBeUndefined()
  expect(new ActLinks({ key: otherKey }, undefined).open(tokenOf(rotated), NOW)).toBeDefined()
  expect(links.open(tokenOf(rotated), NOW)).toBeUndefined()
})

it('makes no link without the address of the service', () => {
  expect(new ActLinks({ key }, undefined).linkTo(subject, NOW)).toBeUndefined()
})
