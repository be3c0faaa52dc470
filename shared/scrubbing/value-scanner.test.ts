import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { VALUE_KINDS } from '../../schemas/records/scrubbing.ts'
import { rounds } from '../../test/support/length.ts'
import { MASK, Scrubber } from './scrubber.ts'

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NyJ9.Zm9vYmFyYmF6'
const scrubberOf = (...rules: ScrubbingRule[]) => new Scrubber({ revision: 1, rules, hashKey: Buffer.from('key') })
const ALL = scrubberOf(...VALUE_KINDS.map((kind): ScrubbingRule => ({ name: kind, values: [kind], action: 'mask' })))
const scrub = (text: string, scrubber = ALL) => scrubber.scrubString(text).replaceAll(MASK, '•')

describe('numbers of cards', () => {
  it.each([
    ['4111111111111111', '•'],
    ['pay with 4111 1111 1111 1111, please', 'pay with •, please'],
    ['4111-1111-1111-1111.', '•.'],
    ['amex 378282246310005', 'amex •'],
    ['3782 822463 10005', '•'],
    ['5555555555554444;6011111111111117', '•;•'],
    ['2026-11-30 4111 1111 1111 1111', '2026-11-30 •'],
    ['4111 1111 1111 1111 5555 5555 5555 4444', '• •'],
    ['{"pan":4222222222222}', '{"pan":•}'],
    ['30569309025904 3530111333300000 6304000000000000', '• • •'],
    ['2223003122003222 2200123456789019', '• •'],
  ])('are found in %j', (text, scrubbed) => expect(scrub(text)).toBe(scrubbed))

  it.each([
    '4111111111111112',
    '1732900000000000000',
    '1732912345678',
    '0.4111111111111111',
    '4111111111111111.5',
    'a4111111111111111',
    '4111111111111111f',
    '41111111111111111111111',
    '4111  1111  1111  1111',
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    '+41 79 123 45 67',
    '2026-11-30 10:00:00.123456789',
  ])('are not found in %j', text => expect(scrub(text)).toBe(text))
})

describe('JSON Web Tokens', () => {
  it.each([
    [JWT, '•'],
    [`Bearer ${JWT}.`, 'Bearer •.'],
    [`"${JWT}","next"`, '"•","next"'],
    ['eyJhbGciOiJub25lIn0.eyJzdWIiOiI0NyJ9.', '•'],
    ['eyJhbGciOiJkaXIifQ..aXY.Y2lwaGVy.dGFn!', '•!'],
  ])('are found in %j', (text, scrubbed) => expect(scrub(text)).toBe(scrubbed))
  it.each(['eyJhbGciOiJIUzI1NiJ9', 'eyJ.a.b', 'heyJude.is.a.song'])('are not found in %j', text =>
    expect(scrub(text)).toBe(text),
  )
})

describe('e-mail addresses', () => {
  it.each([
    ['zorana@example.com', '•'],
    ["'zorana.o'neil+x@mail.example.co.uk'", "'•'"],
    ['<zorana@example.com>,(a_b@x.io).', '<•>,(•).'],
    ['user=zorana%40example.com&x=1', 'user=•&x=1'],
    ['zoë@exämple.de 用户@例子.公司', '• •'],
    ['mailto:a@b.museum', 'mailto:•'],
    ['joe@163.com', '•'],
    ['x@xn--e1afmkfd.xn--p1ai', '•'],
    ['a@b.co, c@d.de', '•, •'],
  ])('are found in %j', (text, scrubbed) => expect(scrub(text)).toBe(scrubbed))
  it.each([
    'root@localhost',
    'node_modules/.pnpm/express@4.18.2/node_modules/@scope/name',
    'img/logo@2x.png',
    'react-dom@18.2.0.production.min.js',
    '@media screen',
    'com.example.Order@1a2b3c',
    'a @ b.com',
    'topic@3',
    '%40 %4',
    'a@',
  ])('are not found in %j', text => expect(scrub(text)).toBe(text))
})

describe('secrets in URLs', () => {
  it.each([
    ['https://joe:hunter2@example.test/x', 'https://joe:•@example.test/x'],
    ['postgres://u:p@ss:w@db:5432/x', 'postgres://u:•@db:5432/x'],
    ['https://ghp_abc@github.com/x.git', 'https://•@github.com/x.git'],
    ['/cb?state=1&access_token=abc.def&x=2#top', '/cb?state=1&access_token=•&x=2#top'],
    ['/v1?api_key=k#token=t;sig=s', '/v1?api_key=•#token=•;sig=•'],
    ['X-Amz-Signature=ab12', 'X-Amz-Signature=•'],
    ['user[password]=hunter2&a=b', 'user[password]=•&a=b'],
    ['user%5Bpassword%5D=hunter2', 'user%5Bpassword%5D=•'],
    ['to=https%3A%2F%2Fx%2F%3Ftoken%3Dabc%26y%3D1', 'to=https%3A%2F%2Fx%2F%3Ftoken%3D•%26y%3D1'],
    ['login password=hunter2 failed', 'login password=• failed'],
    ['jdbc:sqlserver://h;user=sa;password=x;a=b', 'jdbc:sqlserver://h;user=sa;password=•;a=b'],
    ['password="two words" ok', 'password="•" ok'],
    ["password='=x' ok", "password='•' ok"],
    ['AWS_SECRET_ACCESS_KEY=abc', 'AWS_SECRET_ACCESS_KEY=•'],
  ])('are found in %j', (text, scrubbed) => expect(scrub(text)).toBe(scrubbed))
  it.each([
    'https://example.test/?q=token',
    '?tokens=12&monkey=1&author=joe',
    'if (token == null)',
    'token => token',
    'password=',
    'http://host/a:b@c',
    '=',
    'compass=north',
  ])('are not found in %j', text => expect(scrub(text)).toBe(text))
})

it('are replaced as the first rule with their kind says', () => {
  const scrubber = scrubberOf(
    { name: 'hashed', values: ['email'], action: 'hash' },
    { name: 'removed', values: ['email', 'jwt'], action: 'remove' },
  )
  expect(scrub(`a@b.co ${JWT}, 4111111111111111, a@b.co`, scrubber)).toMatch(
    /^(hash:[0-9a-f]{16}) , 4111111111111111, \1$/,
  )
})

it('are found wherever they are, in linear time, and nothing else is changed', () => {
  const secrets = ['4111 1111 1111 1111', JWT, 'zorana@example.com', 'eyJhbGciOiJub25lIn0.e30.']
  const filler = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.stringMatching(/^[0-9@=%.eyJ:/ _-]{0,20}$/),
    fc.constantFrom('token=', '://', 'a:b@'),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(filler, fc.constantFrom(...secrets))), parts => {
      // Line feeds delimit every kind, so that the fillers cannot join what is between them.
      const text = parts.map(([other, secret]) => `${other}\n${secret}\n`).join('')
      const expected = parts.map(([other]) => `${scrub(other)}\n•\n`).join('')
      expect(scrub(text)).toBe(Buffer.from(expected).toString())
    }),
    { numRuns: rounds(2_000) },
  )
})

it.each([
  ...['@', 'a@', '4', '4 ', 'eyJ', 'eyJ.', 'token=', '%40', 'a%3D', ']=', 'x://a:'],
  ...['4111 1111 1111 1111 ', '4111 1111 1111 1112 ', 'token==', '%40a.bc', 'token="'],
])('take no longer than their length for %j again and again', unit => {
  const steps = (bytes: number) => {
    let reads = 0
    const text = Buffer.from(unit.repeat(bytes / unit.length))
    const counted = new Proxy(text, {
      get(target, key) {
        reads++
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    ALL.findParts(counted, { start: 0, end: text.length }, [])
    return reads
  }
  expect(steps(8_000) / steps(2_000)).toBeLessThan(6)
})
