import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { readMapBytes, sameBytes } from './read-map-bytes.ts'

const digestOf = (algorithm: string, bytes: Uint8Array) => createHash(algorithm).update(bytes).digest('hex')
const LIMITS = { maxBytes: 1_000, keepBytes: 100 }

/** Creates an object store that streams its objects in chunks of this size. */
function storeOf(objects: Map<string, Buffer>, chunkBytes = 7): Pick<ObjectStore, 'getStream'> {
  return {
    async getStream(key) {
      const body = objects.get(key)
      if (body === undefined) return undefined
      const chunks = Array.from({ length: Math.ceil(body.length / chunkBytes) }, (_, i) =>
        body.subarray(i * chunkBytes, (i + 1) * chunkBytes),
      )
      const head = { size: body.length, contentType: '', metadata: {}, etag: '' }
      return { ...head, body: Readable.from(chunks, { objectMode: false }) }
    },
  }
}

/** Creates a map that is split into parts at arbitrary positions. */
const cutMap = fc
  .tuple(fc.uint8Array({ maxLength: 300 }), fc.array(fc.nat(300), { maxLength: 6 }), fc.integer({ min: 1, max: 50 }))
  .map(([bytes, cuts, chunkBytes]) => {
    const body = Buffer.from(bytes)
    const ends = [...cuts.map(cut => Math.min(cut, body.length)), body.length].sort((a, b) => a - b)
    const parts = ends.map((end, i) => body.subarray(i === 0 ? 0 : ends[i - 1], end))
    const objects = new Map(parts.map((part, i) => [`part-${i}`, part]))
    const pieces = parts.map((part, i) => ({
      key: `part-${i}`,
      known: { sha256: digestOf('sha256', part), size: part.length },
    }))
    return { body, objects, pieces, store: storeOf(objects, chunkBytes) }
  })

it('digests the concatenated parts, and keeps the bytes of a small map', async () => {
  await fc.assert(
    fc.asyncProperty(cutMap, fc.constantFrom('sha256', 'sha1', 'md5'), async ({ body, pieces, store }, algorithm) => {
      const declared = { algorithm, hex: digestOf(algorithm, body) } as const
      const read = await readMapBytes(store, pieces, declared, LIMITS)
      const map = { sha256: digestOf('sha256', body), size: body.length }
      expect(read).toMatchObject({ outcome: 'read', map, matches: true })
      if (read.outcome === 'read' && body.length <= LIMITS.keepBytes) expect(read.bytes?.equals(body)).toBe(true)
      if (read.outcome === 'read' && body.length > LIMITS.keepBytes) expect(read.bytes).toBeUndefined()
      const again: Buffer[] = []
      for await (const chunk of sameBytes(store, pieces, map)) again.push(chunk)
      expect(Buffer.concat(again).equals(body)).toBe(true)
    }),
  )
})

it('reports a hash that does not match, and a part that has changed since it was sent', async () => {
  await fc.assert(
    fc.asyncProperty(cutMap, async ({ objects, pieces, store }) => {
      const other = { algorithm: 'md5', hex: digestOf('md5', Buffer.from('other')) } as const
      expect(await readMapBytes(store, pieces, other, LIMITS)).toMatchObject({ outcome: 'read', matches: false })
      const index = pieces.length - 1
      objects.set(`part-${index}`, Buffer.from('changed'))
      expect(await readMapBytes(store, pieces, undefined, LIMITS)).toEqual({ outcome: 'other', index })
      objects.delete(`part-${index}`)
      expect(await readMapBytes(store, pieces, undefined, LIMITS)).toEqual({ outcome: 'gone' })
    }),
  )
})

it('stops reading at the limit of a map', async () => {
  const store = storeOf(new Map([['large', Buffer.alloc(LIMITS.maxBytes + 1)]]))
  expect(await readMapBytes(store, [{ key: 'large' }], undefined, LIMITS)).toEqual({ outcome: 'too_large' })
})

it('never yields all bytes of a map that has changed since it was digested', async () => {
  await fc.assert(
    fc.asyncProperty(cutMap, fc.nat(), async ({ body, objects, pieces, store }, at) => {
      fc.pre(body.length > 0)
      const map = { sha256: digestOf('sha256', body), size: body.length }
      const index = at % body.length
      body[index] = (body[index] as number) ^ 1 // the objects are views of the body
      expect(objects.size).toBe(pieces.length)
      let given = 0
      await expect(async () => {
        for await (const chunk of sameBytes(store, pieces, map)) given += chunk.length
      }).rejects.toThrow(TransientError)
      expect(given).toBeLessThan(body.length)
    }),
  )
})
