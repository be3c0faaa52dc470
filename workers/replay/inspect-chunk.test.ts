import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { reasonText } from '../../shared/runtime/reason.ts'
import { inspectChunk } from './inspect-chunk.ts'

const LINES = [
  '{"type":4,"timestamp":1700000000002.5}',
  '{"type":2,"timestamp":1700000000001,"data":{"text":"ü"}}',
  '',
  '{"type":3}',
  '',
]
const TEXT = Buffer.from(LINES.join('\n'))
const FACTS = {
  eventCount: 3,
  hasFullSnapshot: true,
  firstEventMs: 1_700_000_000_001,
  lastEventMs: 1_700_000_000_002.5,
  decompressedBytes: TEXT.length,
  sha256: createHash('sha256').update(TEXT).digest('hex'),
}

describe('returns the facts of a chunk', () => {
  it.each([
    ['that is plain', TEXT, 'identity'],
    ['that is gzipped', gzipSync(TEXT), 'gzip'],
    [
      'that is gzipped in two members',
      Buffer.concat([gzipSync(TEXT.subarray(0, 50)), gzipSync(TEXT.subarray(50))]),
      'gzip',
    ],
  ] as const)('%s', async (_name, body, encoding) => {
    const sentSha256 = createHash('sha256').update(body).digest('hex')
    expect(await inspectChunk(body, encoding)).toEqual({ ok: true, facts: { ...FACTS, sentSha256 } })
  })

  it('that is read in many pieces', async () => {
    const line = Buffer.from(`{"timestamp":5,"data":"${'ü'.repeat(3_000)}"}\n`)
    const body = Buffer.concat(Array.from({ length: 500 }, () => line))
    for (const [sent, encoding] of [
      [body, 'identity'],
      [gzipSync(body), 'gzip'],
    ] as const) {
      expect(await inspectChunk(sent, encoding)).toMatchObject({
        ok: true,
        facts: { eventCount: 500, decompressedBytes: body.length },
      })
    }
  })

  it('whose events have no timestamp', async () => {
    const result = await inspectChunk(Buffer.from('{}'), 'identity')
    expect(result).toMatchObject({
      ok: true,
      facts: { eventCount: 1, firstEventMs: undefined, lastEventMs: undefined },
    })
  })
})

describe('refuses', () => {
  const gzip = gzipSync(TEXT)
  const damaged = Buffer.from(gzip)
  damaged[20] = (damaged[20] as number) ^ 0xff
  it.each([
    ['truncated gzip', gzip.subarray(0, -9), 'gzip', /^bad_compression: /],
    ['gzip without its last byte', gzip.subarray(0, -1), 'gzip', /^bad_compression: /],
    ['damaged gzip', damaged, 'gzip', /^bad_compression: |^not_json_lines: /],
    ['only the magic of gzip', Buffer.from([0x1f, 0x8b]), 'gzip', /^bad_compression: /],
    ['text', Buffer.from('hello'), 'identity', /^not_json_lines: line 1 /],
    ['one truncated line', TEXT.subarray(0, 20), 'identity', /^not_json_lines: line 1 /],
    ['blank lines', Buffer.from(' \n\r\n'), 'identity', /^no_events$/],
    ['gzip of an empty text', gzipSync(''), 'gzip', /^no_events$/],
    [
      'a bomb of one line',
      gzipSync(Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(101 * MIB, 97), Buffer.from('"}')])),
      'gzip',
      /^line_too_long$/,
    ],
    [
      'a bomb of long lines',
      gzipSync(Buffer.alloc(101 * MIB, `{"a":"${'a'.repeat(10 * MIB)}"}\n`)),
      'gzip',
      /^too_large_decompressed$/,
    ],
    ['a bomb of blanks', gzipSync(Buffer.alloc(101 * MIB, 10)), 'gzip', /^too_many_blanks$/],
  ] as const)('%s', async (_name, body, encoding, reason) => {
    const result = await inspectChunk(body, encoding)
    expect(result.ok || reasonText(result.reason)).toMatch(reason)
  })
})

describe('refuses as soon as a limit is passed', () => {
  const fill = (text: string, bytes = 99 * MIB) => gzipSync(Buffer.alloc(bytes, text))
  it.each([
    ['34 million events', fill('{}\n'), 'too_many_events'],
    ['blank lines', fill('\n'), 'too_many_blanks'],
    ['blanks', fill(' '), 'too_many_blanks'],
    ['events with many blank lines between them', fill(`{}${'\n'.repeat(50_000)}`), 'too_many_blanks'],
    ['empty values', fill(`{"a":[${'[],'.repeat(MIB)}0]}\n`), 'too_many_values'],
  ] as const)('%s', async (_name, body, label) => {
    const before = process.cpuUsage()
    expect(await inspectChunk(body, 'gzip')).toEqual({ ok: false, reason: { label } })
    const { user, system } = process.cpuUsage(before)
    // Reading all of it took 1,300 ms, on the machine on which this takes 30 (empty values: 400).
    expect((user + system) / 1_000).toBeLessThan(label === 'too_many_values' ? 1_500 : 300)
  })

  it.each([
    ['a line of 16 MiB', `{"a":"${'a'.repeat(16 * MIB - 8)}"}`, true],
    ['a line of 16 MiB and a byte', `{"a":"${'a'.repeat(16 * MIB - 7)}"}`, 'line_too_long'],
    ['100,000 events', '{}\n'.repeat(100_000), true],
    ['100,001 events', '{}\n'.repeat(100_001), 'too_many_events'],
    ['64 KiB of blanks in a row', `{}${' '.repeat(65_535)}\n{}`, true],
    ['64 KiB and a byte of blanks in a row', `{}${' '.repeat(65_536)}\n{}`, 'too_many_blanks'],
    ['64 KiB and a byte of blanks at the end', `{}\n${' '.repeat(65_536)}`, 'too_many_blanks'],
  ] as const)('%s', async (_name, text, expected) => {
    for (const [body, encoding] of [
      [Buffer.from(text), 'identity'],
      [gzipSync(text), 'gzip'],
    ] as const) {
      const inspected = await inspectChunk(body, encoding)
      expect(inspected.ok || inspected.reason.label).toBe(expected)
    }
  })
})

it('inflates a bomb with little memory, and yields to other work', async () => {
  // 10 MiB that inflate to 10 GiB.
  const start = gzipSync('{"a":"')
  const member = gzipSync(Buffer.alloc(64 * MIB, `${'a'.repeat(8 * MIB)}"}\n{"a":"`), { level: 9 })
  const body = Buffer.concat([start, ...Array.from({ length: 160 }, () => member)])
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const before = process.memoryUsage().rss
  expect(await inspectChunk(body, 'gzip')).toEqual({ ok: false, reason: { label: 'too_large_decompressed' } })
  clearInterval(timer)
  expect(turns).toBeGreaterThan(5)
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * MIB)
})
