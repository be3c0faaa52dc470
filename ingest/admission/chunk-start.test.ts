import { gzipSync } from 'node:zlib'
import { pack } from '@rrweb/packer'
import type { eventWithTime } from '@rrweb/types'
import { describe, expect, it } from 'vitest'
import { faultOfStart } from './chunk-start.ts'

const NO_EVENT = /^a chunk is JSON lines: its first character must be/
const faultOf = (text: string | Buffer, gzip?: object) =>
  gzip ? faultOfStart(gzipSync(text, gzip), 'gzip') : faultOfStart(Buffer.from(text as string), 'identity')

describe('the beginning of a chunk', () => {
  it.each<[string, string | Buffer, RegExp | undefined]>([
    ['an event', '{"type":4}', undefined],
    ['a packed event', JSON.stringify(pack({ type: 4, timestamp: 1 } as unknown as eventWithTime)), undefined],
    ['blanks before an event', '\r\n\t {}', undefined],
    ['the beginning of an event', '{', undefined],
    ['a long event', `{"a":"${'b'.repeat(100_000)}`, undefined],
    // A worker finds that there is no event.
    ['blanks', ' \n', undefined],
    ['more blanks than are looked at', `${' '.repeat(2_000)}x`, undefined],
    ['a text', 'hello', NO_EVENT],
    ['an array of events', '[{"type":4}]', NO_EVENT],
    ['a number', '1', NO_EVENT],
    ['null', 'null', NO_EVENT],
    ['a byte order mark', '\uFEFF{}', NO_EVENT],
    ['HTML after blanks', '\n\n <!doctype html>', NO_EVENT],
    ['an event that is packed and no JSON', pack({ type: 4, timestamp: 1 } as unknown as eventWithTime), NO_EVENT],
    ['a zero', Buffer.alloc(1), NO_EVENT],
    ['many zeros', Buffer.alloc(5_000_000), NO_EVENT],
    ['a form', '------WebKitFormBoundary', NO_EVENT],
  ])('%s, plain and gzipped in several ways', (_name, text, expected) => {
    for (const gzip of [undefined, {}, { level: 0 }, { level: 9 }, { strategy: 2 }]) {
      const fault = faultOf(text, gzip)
      if (expected === undefined) expect(fault).toBeUndefined()
      else expect(fault).toMatch(expected)
    }
  })

  it('is looked for behind long headers and empty members of a gzip', () => {
    const named = (name: string) => {
      const gzip = gzipSync('hello')
      gzip[3] = 8
      return Buffer.concat([gzip.subarray(0, 10), Buffer.from(`${name}\0`), gzip.subarray(10)])
    }
    expect(faultOfStart(named('n'.repeat(500)), 'gzip')).toMatch(NO_EVENT)
    expect(faultOfStart(named('n'.repeat(2_000)), 'gzip')).toBeUndefined()
    expect(faultOfStart(Buffer.concat([gzipSync(''), gzipSync('hello')]), 'gzip')).toMatch(NO_EVENT)
    expect(faultOfStart(Buffer.concat([gzipSync(''), gzipSync('{}')]), 'gzip')).toBeUndefined()
  })

  it('is not a gzip behind the magic bytes', () => {
    const damaged = Buffer.concat([gzipSync('{}').subarray(0, 10), Buffer.alloc(20, 0xff)])
    expect(faultOfStart(damaged, 'gzip')).toBe('the gzip is damaged')
    expect(faultOfStart(Buffer.from([0x1f, 0x8b, 0xff, 0xff]), 'gzip')).toBe('the gzip is damaged')
  })
})
