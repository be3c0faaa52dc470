import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { wordsOf } from './key-words.ts'
import { DEFAULT_SCRUBBER, MASK, Scrubber } from './scrubber.ts'

const scrubberOf = (...rules: ScrubbingRule[]) => new Scrubber({ revision: 1, rules, hashKey: Buffer.from('key') })
const matches = (key: string, scrubber = DEFAULT_SCRUBBER) => {
  const bytes = Buffer.from(`..${key}..`)
  const [may, does] = [scrubber.mayMatch(bytes, 2, bytes.length - 2), scrubber.ruleOf(key) !== undefined]
  // The look at the last word may only say too much.
  expect(may || !does).toBe(true)
  return may && does
}

describe('the default rules', () => {
  it.each([
    'authorization',
    'http.request.header.Authorization',
    'Proxy-Authorization',
    'http.request.header.cookie',
    'Set-Cookie',
    'db.user.password',
    'userPassword',
    'PASSWD',
    'client_secret',
    'AWS_SECRET_ACCESS_KEY',
    'aws.secretAccessKey',
    'access_token',
    'csrfToken',
    'x-amz-security-token',
    'http.request.header.x-api-key',
    'apiKey',
    'APIKey',
    'apikey',
    'private key',
    'password[]',
    'пароль.password',
  ])('match %j', key => expect(matches(key)).toBe(true))

  it.each([
    'gen_ai.usage.input_tokens',
    'token.type',
    'secretary',
    'messaging.kafka.message.key',
    'service.version',
    'session.id',
    'cookies',
    'passwords.count',
    'notapassword',
    'd',
    '',
    '...',
    'ключ',
  ])('do not match %j', key => expect(matches(key)).toBe(false))
})

describe('rules', () => {
  const rules: ScrubbingRule[] = [
    { name: 'csrf', keys: ['csrf token'], action: 'keep' },
    { name: 'people', keys: ['customer.ssn', 'iban', 'имя'], action: 'hash' },
    { name: 'notes', keys: ['note'], action: 'remove' },
    { name: 'tokens', keys: ['token'], action: 'mask' },
  ]
  const scrubber = scrubberOf(...rules)

  it('are asked in their order, and replace as they say', () => {
    const used: ScrubbingRule[] = []
    const before = {
      'x.csrf_token': 'kept',
      accessToken: 'gone',
      'my.customer.ssn': '1',
      'other.ssn': '2',
      имя: 'И',
      note: 'n',
      deep: [{ iban: 'DE1' }, { iban: 'DE1' }, 'iban'],
    }
    const after = scrubber.scrubJson(before, used) as Record<string, unknown>
    expect(after).toMatchObject({ 'x.csrf_token': 'kept', accessToken: MASK, 'other.ssn': '2', note: null })
    expect(after['my.customer.ssn']).toMatch(/^hash:[0-9a-f]{16}$/)
    const [one, two, text] = after.deep as [{ iban: string }, { iban: string }, string]
    expect([one.iban, text]).toEqual([two.iban, 'iban'])
    expect(used.map(({ name }) => name)).toEqual(['tokens', 'people', 'people', 'notes', 'people', 'people'])
  })

  it('replace values in a text, and leave all others byte for byte', () => {
    const text = '{ "a" : 1.0, "big": 12345678901234567890, "a": 2 , "e":[],"o":{ } , "s":"\\"token\\":1"}'
    expect(scrubber.scrubText(text)).toBe(text)
    const before = '{"a":{"token":"s"},"a": 1,"x_token" : { "b":[1,"}"] } ,"n":12345678901234567890,"token":null}'
    const after = `{"a":{"token":"${MASK}"},"a": 1,"x_token" : "${MASK}" ,"n":12345678901234567890,"token":"${MASK}"}`
    expect(scrubber.scrubText(before)).toBe(after)
  })

  it('replace in any text of JSON what they replace in its value', () => {
    const key = fc.oneof(fc.constantFrom('token', 'note', 'a', '\\"', 'имя'), fc.string())
    const value = fc.jsonValue({ noUnicodeString: false } as never)
    const json = fc.oneof(value, fc.dictionary(key, value), fc.array(fc.dictionary(key, fc.dictionary(key, value))))
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, '\t'), (data, space) => {
        const text = JSON.stringify(data, undefined, space)
        expect(JSON.parse(scrubber.scrubText(text))).toEqual(scrubber.scrubJson(JSON.parse(text)))
      }),
    )
  })

  it('leave the keys by which the service finds what it stores', () => {
    const all = scrubberOf({ name: 'all', keys: ['id', 'name', 'version', 'message'], action: 'mask' })
    for (const key of ['session.id', 'service.name', 'service.version', 'exception.message']) {
      expect(all.ruleOf(key)).toBeUndefined()
    }
    expect([all.ruleOf('user.id'), all.ruleOf('host.name')]).not.toContain(undefined)
  })

  it('match words of other alphabets and endings that many keys share, by bytes too', () => {
    const one = scrubberOf({ name: 'r', keys: ['пароль', 'contraseña'], action: 'mask' })
    for (const key of ['user.пароль', 'Contraseña', 'CONTRASEÑA']) expect(matches(key, one)).toBe(true)
    expect(matches('user.name', one)).toBe(false)
    const many = scrubberOf({ name: 'r', keys: Array.from({ length: 100 }, (_, i) => `${i}ion`), action: 'mask' })
    expect([matches('a.7ion', many), matches('region', many)]).toEqual([true, false])
    expect(matches(`${'x.'.repeat(5_000)}token`)).toBe(true)
  })

  it('hash by the key of the workspace', () => {
    const other = new Scrubber({ revision: 1, rules, hashKey: Buffer.from('other') })
    const [rule] = [rules[1] as ScrubbingRule]
    expect(scrubber.replace(rule, () => 'x')).not.toBe(other.replace(rule, () => 'x'))
    expect(scrubber.replace(rule, () => 'x')).toBe(scrubber.replace(rule, () => Buffer.from('x')))
  })

  it('match whatever ends with the words of a key, written in any way', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9]{1,7}$/)
    const words = fc.array(word, { minLength: 1, maxLength: 4 })
    const separator = fc.constantFrom('.', '_', '-', ' ', '/', '::')
    fc.assert(
      fc.property(words, words, separator, fc.boolean(), (before, ending, between, isCamel) => {
        const one = scrubberOf({ name: 'r', keys: [ending.join(' ')], action: 'mask' })
        const all = [...before, ...ending]
        const camel = all.map((text, i) => (i === 0 ? text : text[0]?.toUpperCase() + text.slice(1))).join('')
        const key = isCamel ? camel : all.join(between)
        const isEnding = wordsOf(key).slice(-ending.length).join(' ') === ending.join(' ')
        expect(matches(key, one)).toBe(isEnding)
        expect(isEnding || isCamel).toBe(true)
      }),
    )
  })
})

describe('replaced values', () => {
  const rules: ScrubbingRule[] = [
    { name: 'csrf', keys: ['csrf token'], action: 'keep' },
    { name: 'tokens', keys: ['token'], action: 'remove' },
    { name: 'people', keys: ['email'], action: 'hash' },
  ]

  it('are counted by the name of their rule until the counts are taken', () => {
    const scrubber = scrubberOf(...rules)
    expect(scrubber.takeCounts()).toBeUndefined()
    scrubber.scrubText('{"token": {"email": 1}, "csrf_token": 2, "a": [{"email": 3}, {"user.email": 4}]}')
    scrubber.scrubJson({ token: 1 })
    expect(scrubber.takeCounts()).toEqual(new Map(Object.entries({ tokens: 2, people: 2 })))
    expect(scrubber.takeCounts()).toBeUndefined()
  })

  it('are taken back since a mark, and not counted where they are read again', () => {
    const { counts } = scrubberOf(...rules)
    counts.add('tokens')
    counts.mark()
    counts.add('tokens', 2)
    expect(counts.sinceMark()).toEqual(new Map([['tokens', 2]]))
    counts.rewind()
    counts.uncounted(() => counts.add('people'))
    counts.add('people')
    expect(counts.take()).toEqual(new Map(Object.entries({ tokens: 1, people: 1 })))
  })
})

describe('patterns', () => {
  const pattern = (expression: string): ScrubbingRule => ({
    name: 'orders',
    keys: ['note'],
    pattern: expression,
    action: 'mask',
  })
  const found = (rule: ScrubbingRule, text: string) => scrubberOf(rule).scrubString(text, [rule])

  it('replace what they match, characters of any length and overlaps included', () => {
    const orders = pattern('(?i)o-\\d+')
    expect(found(orders, 'zoë’s O-12, o-3 and 👍o-4')).toBe(`zoë’s ${MASK}, ${MASK} and 👍${MASK}`)
    const people: ScrubbingRule = { name: 'people', values: ['email'], action: 'mask' }
    expect(scrubberOf(orders, people).scrubString('o-1@x.example o-2', [orders])).toBe(`${MASK} ${MASK}`)
  })

  it('replace a whole text that is too long, and what follows too many steps in a request', () => {
    const orders = pattern('o-[0-9]')
    expect(found(orders, `o-1${' '.repeat(64 * 1024)}`)).toBe(MASK)
    const scrubber = scrubberOf(orders)
    const text = 'a'.repeat(64_000)
    const scrub = () => scrubber.scrubString(text, [orders])
    let texts = 0
    for (; scrub() === text; texts++) expect(texts).toBeLessThan(1_000)
    expect(texts).toBeGreaterThan(10)
    expect(scrub()).toBe(MASK)
    scrubber.beginRequest()
    expect(scrub()).toBe(text)
  })

  it('replace whole texts if this version does not take them any more', () =>
    expect(found(pattern('(?=x)'), 'anything')).toBe(MASK))

  it('are looked for where the key of a member or of what is around it asks for it', () => {
    const scrubber = scrubberOf(pattern('o-\\d'))
    expect(scrubber.scrubText('{"note":["o-1",{"b":"o-2"}],"other":"o-3","n":1.0}')).toBe(
      `{"note":["${MASK}",{"b":"${MASK}"}],"other":"o-3","n":1.0}`,
    )
  })
})

it('changes texts of JSON by values only where these are, and leaves numbers of any size', () => {
  const scrubber = scrubberOf({ name: 'all', values: ['email', 'card_number'], action: 'mask' })
  const text = '{ "a@b.co": [1.10, 12345678901234567890, "\\u0061@b.co", 4111111111111111], "session.id": "a@b.co" }'
  expect(scrubber.scrubText(text)).toBe(
    `{ "${MASK}": [1.10, 12345678901234567890, "${MASK}", "${MASK}"], "session.id": "a@b.co" }`,
  )
})
