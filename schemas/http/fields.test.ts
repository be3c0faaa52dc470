import { expect, it } from 'vitest'
import { z } from 'zod'
import { emailSchema, listOf } from './fields.ts'

it('refuses a list that is too long without looking at its entries', () => {
  let looked = 0
  const entry = z.custom<string>(value => {
    looked++
    return typeof value === 'string'
  }, 'must be a string')
  const list = listOf(entry, 2, 'must be an array')
  const messagesOf = (value: unknown) => list.safeParse(value).error?.issues.map(({ message }) => message)

  expect(messagesOf(Array.from({ length: 100_000 }, () => 1))).toEqual(['must have at most 2 items'])
  expect(looked).toBe(0)
  expect(messagesOf(['a', 1])).toEqual(['must be a string'])
  expect(messagesOf('a')).toEqual(['must be an array'])
  expect(list.parse(['a', 'b'])).toEqual(['a', 'b'])
})

const longLabel = 'd'.repeat(63)

it.each([
  'ada@example.com',
  'root@localhost',
  'a@b',
  'zoe+x@mail.example.com',
  "o'brien_{x}|~`=?^%$#!&*/@example.com",
  '"ada lovelace"@example.com',
  '"a@b\\"c\\\\"@example.com',
  '""@example.com',
  '用户@例子.公司',
  'пример@xn--e1afmkfd.example',
  '"用 户"@example.com',
  'x@123.example',
  'ada@[192.0.2.1]',
  'ada@[IPv6:2001:db8::1]',
  `${'a'.repeat(64)}@${longLabel}.example`,
])('the address %s is one', address => {
  expect(emailSchema.safeParse(address).success).toBe(true)
})

it.each([
  '',
  '@',
  'nobody',
  'nobody@',
  '@example.com',
  'a b@c.example',
  'a@b c.example',
  'a@c.example\n',
  'a\u00a0@c.example',
  '.a@c.example',
  'a.@c.example',
  'a..b@c.example',
  'a@b@c.example',
  'a"b@c.example',
  '"a"b@c.example',
  '"a@c.example',
  'a@.example',
  'a@c..example',
  'a@c.example.',
  'a@-c.example',
  'a@c-.example',
  'a@c_d.example',
  'a@[192.0.2.256]',
  'a@[2001:db8::1]',
  'a@[IPv6:192.0.2.1]',
  'Ada <ada@example.com>',
  'ada@example.com, bob@example.com',
  'mailto:',
  `${'a'.repeat(65)}@c.example`,
  `a@${longLabel}d.example`,
  `a@${`${longLabel}.`.repeat(4)}x`,
  `${'"'.repeat(100_000)}@x`,
])('the address %j is none', address => {
  expect(emailSchema.safeParse(address).error?.issues[0]?.message).toBe('must be an email address')
})
