import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { reasonText } from '../../shared/runtime/reason.ts'
import { inspectChunk } from './inspect-chunk.ts'

const MIB = 1024 * 1024
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
    expect(await inspectChunk(body, encoding)).toEqual({ ok: true, facts: FACTS })
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
    ['a truncated last line', TEXT.subarray(0, -4), 'identity', /^not_json_lines: line 4 /],
    ['blank lines', Buffer.from(' \n\r\n'), 'identity', /^no_events$/],
    ['gzip of an empty text', gzipSync(''), 'gzip', /^no_events$/],
    [
      'a bomb of one line',
      gzipSync(Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(101 * MIB, 97), Buffer.from('"}')])),
      'gzip',
      /^too_large_decompressed$/,
    ],
    ['a bomb of blanks', gzipSync(Buffer.alloc(101 * MIB, 10)), 'gzip', /^too_large_decompressed$/],
  ] as const)('%s', async (_name, body, encoding, reason) => {
    const result = await inspectChunk(body, encoding)
    expect(result.ok || reasonText(result.reason)).toMatch(reason)
  })
})

it('inflates a bomb with little memory, and yields to other work', async () => {
  // 10 MiB that inflate to 10 GiB.
  const start = gzipSync('{"a":"')
  const member = gzipSync(Buffer.alloc(64 * MIB, 97), { level: 9 })
  const body = Buffer.concat([start, ...Array.from({ length: 160 }, () => member)])
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const before = process.memoryUsage().rss
  expect(await inspectChunk(body, 'gzip')).toEqual({ ok: false, reason: { label: 'too_large_decompressed' } })
  clearInterval(timer)
  expect(turns).toBeGreaterThan(5)
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * MIB)
})
