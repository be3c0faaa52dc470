import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectHead } from '../../shared/object-store/types.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { MapContents, type MapContentsDeps, TOO_COSTLY } from './map-contents.ts'

const digestOf = (bytes: Buffer, algorithm: string) => createHash(algorithm).update(bytes).digest('hex')

/** Creates a store in memory that counts its calls, and the contents of one workspace in it. */
function setUp(readLimitBytes?: number) {
  const objects = new Map<string, { body: Buffer; metadata: Readonly<Record<string, string>> }>()
  const calls = { heads: 0, readBytes: 0 }
  let failures = 0
  const headOf = (key: string): ObjectHead | undefined => {
    const object = objects.get(key)
    return object && { size: object.body.length, contentType: '', metadata: object.metadata, etag: '' }
  }
  const put = async (key: string, body: Buffer, { metadata = {} }: { metadata?: Readonly<Record<string, string>> }) =>
    void objects.set(key, { body, metadata })
  const deps: MapContentsDeps = {
    objects: {
      async head(key) {
        calls.heads++
        return headOf(key)
      },
      async getStream(key) {
        const object = objects.get(key)
        const head = headOf(key)
        if (object === undefined || head === undefined) return undefined
        async function* chunks(body: Buffer) {
          for (let at = 0; at < body.length; at += 100) {
            const chunk = body.subarray(at, at + 100)
            calls.readBytes += chunk.length
            yield chunk
            if (failures-- > 0) throw new TransientError('the store is unavailable')
          }
        }
        return { ...head, body: Readable.from(chunks(object.body), { objectMode: false }) }
      },
      put,
      async putStream(key, source, _size, options) {
        const chunks: Buffer[] = []
        for await (const chunk of source) chunks.push(chunk)
        await put(key, Buffer.concat(chunks), options)
      },
    },
    releases: { storedMaps: async () => new Set(), removeStoredMaps: async () => {}, useMap: async () => {} },
  }
  const contents = () => new MapContents(deps, 'ws_1', readLimitBytes)
  const fail = (times: number) => {
    failures = times
  }
  return { objects, calls, contents, fail }
}

const MAP = Buffer.from(JSON.stringify({ version: 3, mappings: 'A'.repeat(900) }))
const SHA256 = digestOf(MAP, 'sha256')

it('reads a stored map once for any number of paths that declare its MD5', async () => {
  const { objects, calls, contents } = setUp()
  objects.set(sourceMapKey('ws_1', SHA256), { body: MAP, metadata: {} })
  const one = contents()
  const declared = { algorithm: 'md5', hex: digestOf(MAP, 'md5') } as const
  const found = await Promise.all(Array.from({ length: 1_000 }, () => one.find(SHA256, declared)))
  for (const outcome of found) expect(outcome).toEqual({ outcome: 'found', map: { sha256: SHA256, size: MAP.length } })
  expect(await one.find(SHA256, { algorithm: 'sha1', hex: digestOf(MAP, 'sha1') })).toMatchObject({ outcome: 'found' })
  expect(await one.find(SHA256, { algorithm: 'md5', hex: '0'.repeat(32) })).toMatchObject({ outcome: 'fault' })
  expect(calls).toEqual({ heads: 1, readBytes: MAP.length })
})

it('stores the digests of a map with it, so that later completions need not read it', async () => {
  const { objects, calls, contents } = setUp()
  objects.set('staged', { body: MAP, metadata: {} })
  await contents().keep([{ key: 'staged' }], undefined)
  calls.readBytes = 0
  const declared = { algorithm: 'md5', hex: digestOf(MAP, 'md5') } as const
  expect(await contents().find(SHA256, declared)).toMatchObject({ outcome: 'found' })
  expect(calls.readBytes).toBe(0)
})

it('reads no more than its limit, and gives back what a failed read has taken', async () => {
  const { objects, calls, contents, fail } = setUp(2_000)
  for (const key of ['a', 'b', 'c']) objects.set(key, { body: MAP, metadata: {} })
  const one = contents()
  fail(3)
  for (let i = 0; i < 3; i++) await expect(one.keep([{ key: 'a' }], undefined)).rejects.toThrow(TransientError)
  for (const key of ['a', 'b']) expect(await one.keep([{ key }], undefined)).toMatchObject({ outcome: 'found' })
  expect(await one.keep([{ key: 'c' }], undefined)).toEqual({
    outcome: 'fault',
    fault: 'was not read: one completion reads at most 8192 MiB of maps',
  })
  expect(calls.readBytes).toBeLessThan(2_500)
})

it('does not keep a map that would cost too much to parse', async () => {
  const { objects, contents } = setUp()
  objects.set('staged', { body: Buffer.from(`{"sources":[${'{},'.repeat(4_200_000)}{}]}`), metadata: {} })
  expect(await contents().keep([{ key: 'staged' }], undefined)).toEqual({ outcome: 'fault', fault: TOO_COSTLY })
  expect([...objects.keys()]).toEqual(['staged'])
})

it('keeps bytes that are not JSON, which cannot be parsed at all', async () => {
  const { objects, contents } = setUp()
  objects.set('staged', { body: Buffer.from('part 0 part 0 '), metadata: {} })
  expect(await contents().keep([{ key: 'staged' }], undefined)).toMatchObject({ outcome: 'found' })
})
