import { gunzipSync, gzipSync } from 'node:zlib'
import { pack } from '@rrweb/packer'
import type { eventWithTime } from '@rrweb/types'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ScrubbingRule, VALUE_KINDS } from '../../schemas/records/scrubbing.ts'
import { MIB } from '../../schemas/units.ts'
import { Scrubber } from '../../shared/scrubbing/scrubber.ts'
import { rounds } from '../../test/support/length.ts'
import { seededRandom } from '../../test/support/payloads/scramble-message.ts'
import { inspectChunk } from './inspect-chunk.ts'
import { LineScrubber, SCRUBBED_VALUES_MAX } from './line-scrubber.ts'

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NyJ9.Zm9vYmFyYmF6'
const hashKey = Buffer.from('key')
const rulesOf = (action: ScrubbingRule['action'], values = [...VALUE_KINDS]) => {
  const rules: ScrubbingRule[] = [
    { name: 'by key', keys: ['text', 'data'], action: 'mask' },
    { name: 'values', values, action },
  ]
  return { revision: 1, rules, hashKey }
}
const MASKED = rulesOf('mask')
const scrub = (lines: string | Buffer, rules = MASKED) =>
  Buffer.concat([...new LineScrubber(rules).scrub(Buffer.from(lines as string))]).toString()

describe('are replaced', () => {
  it.each([
    ['in strings', '{"text":"call zorana@example.com"}', '{"text":"call [scrubbed]"}'],
    ['in keys', '{"a@b.co":{"4111 1111 1111 1111":1}}', '{"[scrubbed]":{"[scrubbed]":1}}'],
    ['in numbers, which become texts', '[4111111111111111 ,-1.5e3]', '["[scrubbed]" ,-1.5e3]'],
    ['in numbers with a point', '[4111111111111111.0]', '["[scrubbed]"]'],
    ['behind an escape', String.raw`["\nzorana@example.com\n"]`, String.raw`["\n[scrubbed]\n"]`],
    [
      'where they are escaped',
      String.raw`["\u2603 zorana\u0040example.com\u2603 ü"]`,
      String.raw`["\u2603 [scrubbed] ü"]`,
    ],
    [
      'with pairs of surrogates',
      String.raw`["\ud83d\ude00 \u0061\u0040b.co \ud83d"]`,
      String.raw`["\ud83d\ude00 [scrubbed] \ud83d"]`,
    ],
    [
      'in escaped URLs',
      String.raw`["https:\/\/joe:hunter2@example.test\/?token=abc"]`,
      String.raw`["https:\/\/joe:[scrubbed]@example.test\/?token=[scrubbed]"]`,
    ],
    [
      'in JSON in a string',
      String.raw`{"body":"{\"mail\":\"a@b.co\"}"}`,
      String.raw`{"body":"{\"mail\":\"[scrubbed]\"}"}`,
    ],
    [
      'in several lines',
      `{"a":"${JWT}"}\n{"b":1}\r\n \n{"c":"a@b.co"}\n`,
      '{"a":"[scrubbed]"}\n{"b":1}\r\n \n{"c":"[scrubbed]"}\n',
    ],
  ])('%s', (_name, lines, scrubbed) => expect(scrub(lines)).toBe(scrubbed))

  it.each([
    ['a secret beside the end of a string', '{"token=":"x","a":"token="}'],
    ['a time', '{"timestamp":1700000000002.5,"type":3}'],
    ['a number beside a name', '{"a4111111111111111":1}'],
    ['long numbers', `[${'4'.repeat(100)},4111111111111111000]`],
    ['keys of rules', '{"text":"x","data":{"text":"y"}}'],
    ['an escaped backslash', String.raw`{"path":"C:\\users\\joe\\@","q":"\\"}`],
  ])('not %s', (_name, lines) => {
    expect(scrub(lines)).toBe(lines)
    expect(new LineScrubber(MASKED).hasValues(Buffer.from(lines))).toBe(false)
  })

  it('without half a character of an address that is too long', () => {
    for (let i = 0; i < 4; i++) {
      const scrubbed = scrub(`{"a":"${'x'.repeat(i)}${'😀'.repeat(100)}@${'ü'.repeat(100)}.${'é'.repeat(100)}"}`)
      expect([scrubbed.includes('[scrubbed]'), scrubbed.includes('\ufffd')]).toEqual([true, false])
    }
  })
})

describe('of any JSON', () => {
  const secret = fc.constantFrom(
    ...['4111 1111 1111 1111', '5555555555554444', JWT, 'zorana@example.com', '😀.ö@exämple.de', 'a%40b.co'],
    ...['https://joe:p@ss@example.test/', '/?token=abc&x=1', 'password="two words"', 'user%5Bpwd%5D=%3D'],
  )
  const filler = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 10 }),
    fc.stringMatching(/^[0-9@=%.eyJ:/ _"'\\-]{0,10}$/),
    fc.constantFrom('\n', '\\', '/', '"', '\\u0040', 'token=', '://'),
  )
  const text = fc.array(fc.oneof(filler, secret), { maxLength: 5 }).map(parts => parts.join(''))
  const number = fc.constantFrom(4111111111111111, 378282246310005, 4111111111111112, 1700000000002.5, -0.5, 1e300)
  const { value } = fc.letrec(tie => ({
    value: fc.oneof({ maxDepth: 3 }, text, number, fc.constantFrom(true, null), tie('list'), tie('object')),
    list: fc.array(tie('value'), { maxLength: 4 }),
    object: fc.array(fc.tuple(text, tie('value')), { maxLength: 4 }).map(members => ({ members })),
  }))
  /** Writes JSON with some characters escaped that need not be. */
  const write = (json: unknown, random: () => number): string => {
    if (Array.isArray(json)) return `[${json.map(item => write(item, random)).join(' ,')}]`
    if (typeof json === 'string') return writeText(json, random)
    if (json === null || typeof json !== 'object') return JSON.stringify(json)
    const { members } = json as { members: [string, unknown][] }
    return `{${members.map(([key, item]) => `${writeText(key, random)}: ${write(item, random)}`).join(',')}}`
  }
  const escapeOf = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  const writeText = (json: string, random: () => number) => {
    const share = random() < 0.5 ? 0 : random()
    const units =
      JSON.stringify(json)
        .slice(1, -1)
        .match(/\\u....|\\.|./gsu) ?? []
    const escaped = units.map(unit => {
      if (unit.startsWith('\\') || random() > share) return unit
      return unit === '/' ? '\\/' : unit.split('').map(escapeOf).join('')
    })
    return `"${escaped.join('')}"`
  }
  /** What is to be found, by the parsed value alone. Members stay in a list, because two keys may become the same. */
  const expected = (scrubber: Scrubber, json: unknown): unknown => {
    if (Array.isArray(json)) return json.map(item => expected(scrubber, item))
    if (json === null || typeof json !== 'object') return scrubber.scrubJson(json)
    const { members } = json as { members: [string, unknown][] }
    return { members: members.map(([key, item]) => [scrubber.scrubString(key), expected(scrubber, item)]) }
  }

  it.each(['mask', 'hash', 'remove'] as const)('values are replaced by %s as in its texts', action => {
    const rules = rulesOf(action)
    const scrubber = new Scrubber({ ...rules, rules: rules.rules.slice(1) })
    const lines = fc.array(value, { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(lines, fc.integer(), (lines, seed) => {
        const sent = lines.map(line => write(line, seededRandom(seed))).join('\n')
        const scrubbed = scrub(sent, rules)
        const plain = lines.map(line => write(expected(scrubber, line), () => 1))
        expect(scrubbed.split('\n').map(line => JSON.parse(line))).toEqual(plain.map(line => JSON.parse(line)))
        expect(new LineScrubber(rules).hasValues(Buffer.from(sent))).toBe(scrubbed !== sent)
      }),
      { numRuns: rounds(5_000) },
    )
  })

  it('and of none, nothing is thrown', () => {
    const bytes = fc.oneof(
      fc.uint8Array(),
      fc.stringMatching(/^[{}[\]",:\\u0d8-9@=%.eyJ\n-]{0,60}$/).map(text => Buffer.from(text)),
    )
    fc.assert(
      fc.property(bytes, lines => void scrub(Buffer.from(lines))),
      { numRuns: rounds(20_000) },
    )
  })
})

describe('a chunk', () => {
  const event = (text: string) => ({ type: 3, timestamp: 5, data: { text } }) as unknown as eventWithTime
  const inspect = async (text: string, rules = MASKED) => {
    const [plain, zipped] = [Buffer.from(text), gzipSync(text)]
    const found = await Promise.all([inspectChunk(plain, 'identity', rules), inspectChunk(zipped, 'gzip', rules)])
    return found.map(inspected =>
      inspected.ok
        ? { text: inspected.mended && gunzipSync(inspected.mended).toString(), facts: inspected.facts }
        : { refused: inspected.reason.label },
    )
  }

  it('stays as it was sent if it has no values', async () => {
    const text = `${JSON.stringify(event('x'.repeat(300_000)))}\n${JSON.stringify(event('y'))}`
    for (const { text: mended, facts } of await inspect(text)) {
      expect([mended, facts?.decompressedBytes]).toEqual([undefined, text.length])
    }
  })

  it('is scrubbed wherever its pieces end, and its facts are those of what is stored', async () => {
    const filler = JSON.stringify(event('x'.repeat(1_000)))
    const secret = (i: number) => JSON.stringify(event(`${'y'.repeat(i)} zorana@example.com`))
    const lines = Array.from({ length: 1_000 }, (_, i) => (i % 100 === 7 ? secret(i) : filler))
    const expected = lines.join('\n').replaceAll('zorana@example.com', '[scrubbed]')
    for (const { text, facts } of await inspect(lines.join('\n'))) {
      expect(text).toBe(expected)
      expect(facts).toMatchObject({ eventCount: 1_000, decompressedBytes: expected.length, scrubbed: [['values', 10]] })
      const asSent = await inspectChunk(Buffer.from(expected), 'identity')
      expect(asSent).toMatchObject({ facts: { sha256: facts?.sha256 } })
    }
  })

  it('hides nothing in packed lines or in a line that is truncated', async () => {
    const packed = `${JSON.stringify(event('z'))}\n${JSON.stringify(pack(event('zorana@example.com')))}\n{"a":"a@b.co`
    for (const { text, facts } of await inspect(packed)) {
      const events = text
        ?.trim()
        .split('\n')
        .map(line => JSON.parse(line))
      expect(events).toMatchObject([event('z'), event('[scrubbed]')])
      expect(facts).toMatchObject({ eventCount: 2, truncatedLines: 1 })
    }
  })

  it('has the same bytes again by the same rules', async () => {
    const rules = rulesOf('hash')
    const text = JSON.stringify(event(`a@b.co ${JWT}`))
    const [one, other] = [await inspect(text, rules), await inspect(text, rules)]
    expect(one).toEqual(other)
    expect(one[0]?.text).toMatch(/"hash:[0-9a-f]{16} hash:[0-9a-f]{16}"/)
  })

  it.each([
    ['a text without an event', '[]\n"a@b.co"', 'not_json_lines'],
    [
      'a line that is longer with what replaces its values',
      `{"a":"${'x'.repeat(10 * MIB)}${'?sig=x&'.repeat(800_000)}"}`,
      'line_too_long',
    ],
    ['more values than are replaced', `{"a":"${'?sig=x&'.repeat(100_000)}"}\n`.repeat(11), 'too_many_values'],
  ])('is refused if it is %s', async (_name, text, label) => {
    for (const found of await inspect(text)) expect(found).toEqual({ refused: label })
    expect(SCRUBBED_VALUES_MAX).toBe(1_000_000)
  })
})

it.each(['"\\u0040",', '"a@b.co",', '"\\n@",', '4111111111111112,', '"=",'])(
  'takes time in proportion to lines of %j',
  unit => {
    const cpuMs = (bytes: number) => {
      const lines = Buffer.from(`[${unit.repeat(bytes / unit.length)}0]`)
      const before = process.cpuUsage()
      for (const _ of new LineScrubber(MASKED).scrub(lines));
      return process.cpuUsage(before).user / 1_000
    }
    cpuMs(100_000)
    expect(cpuMs(2_000_000)).toBeLessThan(200 + 30 * cpuMs(200_000))
  },
)
