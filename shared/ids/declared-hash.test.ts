import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDeclaredHash } from './declared-hash.ts'

const algorithms = ['sha256', 'sha1', 'md5'] as const
const digestOf = (algorithm: string, bytes: Uint8Array) => createHash(algorithm).update(bytes).digest('hex')

it('reads the digest of any bytes back, whatever its case and with or without its name', () => {
  const prefixes = { sha256: ['sha256', 'sha-256', 'SHA-256'], sha1: ['sha1', 'sha-1', 'SHA1'], md5: ['md5', 'MD5'] }
  fc.assert(
    fc.property(
      fc.uint8Array(),
      fc.constantFrom(...algorithms),
      fc.nat(2),
      fc.constantFrom('', ':', '-'),
      fc.boolean(),
      (bytes, algorithm, which, separator, upper) => {
        const hex = digestOf(algorithm, bytes)
        const names = prefixes[algorithm]
        const name = separator === '' ? '' : names[which % names.length] + separator
        const declared = name + (upper ? hex.toUpperCase() : hex)
        expect(parseDeclaredHash(declared)).toEqual({ algorithm, hex })
      },
    ),
  )
})

describe('cannot compare', () => {
  const sha256 = digestOf('sha256', Buffer.from('x'))
  it.each([
    ['nothing', ''],
    ['a word', 'latest'],
    ['base64', `sha256-${createHash('sha256').update('x').digest('base64')}`],
    ['digits of no known length', sha256.slice(1)],
    ['digits of another length than the name says', `md5:${sha256}`],
    ['an unknown algorithm', `blake3:${sha256}`],
    ['a separator without a name', `:${sha256}`],
    ['something behind the digits', `${sha256} `],
    ['a name that is longer than any', `sha256:${'0'.repeat(200)}`],
  ])('%s', (_name, text) => {
    expect(parseDeclaredHash(text)).toBeUndefined()
  })
})
