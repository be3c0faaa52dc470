import { gunzipSync, gzipSync } from 'node:zlib'
import { pack } from '@rrweb/packer'
import { EventType, type eventWithTime } from '@rrweb/types'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { inspectChunk } from './inspect-chunk.ts'

/** Returns the text that is stored for a chunk, and its facts. */
async function store(text: string | Buffer, encoding: 'gzip' | 'identity' = 'identity') {
  const body = encoding === 'gzip' ? gzipSync(text) : Buffer.from(text as string)
  const inspected = await inspectChunk(body, encoding)
  if (!inspected.ok) return { refused: inspected.reason.label }
  const stored = inspected.mended ? gunzipSync(inspected.mended) : Buffer.from(text as string)
  const lines = stored.toString().split('\n')
  return { events: lines.filter(line => line.trim() !== '').map(line => JSON.parse(line)), facts: inspected.facts }
}

const LINE_FEED = 0x0a
const json = JSON.stringify
const event = fc
  .record({ timestamp: fc.integer({ min: 1, max: 2e12 }), type: fc.integer({ min: 0, max: 6 }), data: fc.jsonValue() })
  // Only what JSON keeps: no negative zero.
  .map(value => JSON.parse(json(value)) as eventWithTime)
const packed = (value: eventWithTime) => json(pack(value))
const lineOf = fc.constantFrom(packed, json, (value: eventWithTime) => json(json(value)))

it('stores the events of any mixture of packed and plain lines, in their order', async () => {
  const line = fc.tuple(event, lineOf, fc.constantFrom('', ' ', '\r', '\n', '\t\n'))
  await fc.assert(
    fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 8 }), fc.boolean(), async (lines, isGzip) => {
      const text = lines.map(([value, write, blank]) => `${blank}${write(value)}${blank}\n`).join('')
      const { events = [], facts } = await store(text, isGzip ? 'gzip' : 'identity')
      expect(events).toEqual(lines.map(([value, write]) => (write === packed ? { ...value, v: 'v1' } : value)))
      const times = lines.map(([{ timestamp }]) => timestamp)
      expect(facts).toMatchObject({
        eventCount: lines.length,
        firstEventMs: Math.min(...times),
        lastEventMs: Math.max(...times),
        hasFullSnapshot: lines.some(([{ type }]) => type === EventType.FullSnapshot),
      })
      expect(facts).not.toHaveProperty('truncatedLines')
    }),
  )
})

it('keeps the whole lines of a chunk that ends anywhere, and counts the rest', async () => {
  const lines = fc.array(fc.tuple(event, lineOf), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(lines, fc.nat(), fc.constantFrom('', '\n', '\n \n'), async (given, at, after) => {
      const sent = Buffer.from(given.map(([value, write]) => write(value)).join('\n'))
      const cut = sent.subarray(0, 1 + (at % sent.length))
      const isWhole = [cut.at(-1), sent[cut.length] ?? LINE_FEED].includes(LINE_FEED)
      const count = cut.toString().trimEnd().split('\n').length - (isWhole ? 0 : 1)
      const { events, facts, refused } = await store(Buffer.concat([cut, Buffer.from(after)]))
      expect([refused, facts?.eventCount, events?.length]).toEqual(
        count === 0 ? ['not_json_lines', undefined, undefined] : [undefined, count, count],
      )
      expect(facts?.truncatedLines).toBe(isWhole || count === 0 ? undefined : 1)
    }),
    { numRuns: 500 },
  )
})

const whole = '{"timestamp":5}\n'

describe('refuses', () => {
  const long = json('a'.repeat(17 * MIB))
  it.each<[string, string | Buffer, string]>([
    ['a line that is truncated before the last one', `{"a":\n${whole}`, 'not_json_lines'],
    ['a last line that is not the beginning of an event', `${whole}[]`, 'not_json_lines'],
    ['a last line of another value', `${whole}tru`, 'not_json_lines'],
    ['a text that is not packed', `${whole}"hello"\n`, 'not_json_lines'],
    [
      'a packed event that is truncated within whole JSON',
      `${json(pack({} as eventWithTime).slice(0, -6))}\n`,
      'not_json_lines',
    ],
    ['a packed value that is not an event', json(pack('[]' as unknown as eventWithTime).slice(0, 9)), 'not_json_lines'],
    ['one truncated line', '{"a":', 'not_json_lines'],
    ['a truncated line with many blanks after it', `${whole}{"a":${'\n'.repeat(70_000)}`, 'not_json_lines'],
    ['a packed line that is too long', `"${'\\u0078'.repeat(2 * MIB)}"`, 'line_too_long'],
    ['a packed event that is too long', json(pack({ data: long } as unknown as eventWithTime)), 'line_too_long'],
    ['more packed events than a chunk may have', `${json('{}')}\n`.repeat(100_001), 'too_many_events'],
    ['blanks', `"{}"\n${' '.repeat(65_536)}\n"{}"`, 'too_many_blanks'],
  ])('%s', async (_name, text, reason) => {
    expect(await store(text)).toEqual({ refused: reason })
  })

  it('packed events that inflate to more than a chunk may have, with little memory and time', async () => {
    const line = `${json(pack({ timestamp: 1, data: 'a'.repeat(15 * MIB) } as unknown as eventWithTime))}\n`
    const before = process.cpuUsage()
    expect(await store(line.repeat(1_000), 'gzip')).toEqual({ refused: 'too_large_decompressed' })
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000)
  })

  it('packed events that need far more room than was sent, because they repeat each other', async () => {
    const data = Array.from({ length: 1_000 }, (_, i) => `${Math.imul(i + 1, 2_654_435_761) >>> 0}`.repeat(8)).join('')
    const line = `${json(pack({ timestamp: 1, data } as unknown as eventWithTime))}\n`
    const body = gzipSync(line.repeat(500))
    const inspected = await inspectChunk(body, 'gzip')
    expect(inspected.ok ? inspected.mended?.length : inspected.reason.label).toBe('too_large_decompressed')
  })
})
