import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { readMapBytes, sameBytes } from './read-map-bytes.ts'

const digestOf = (algorithm: string, bytes: Uint8Array) => createHash(algorithm).update(bytes).digest('hex')
const LIMITS = { maxBytes: 1_000, keepBytes: 100, maxCostBytes: 5_000, take: () => true }

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
    fc.asyncProperty(cutMap, async ({ body, pieces, store }) => {
      const read = await readMapBytes(store, pieces, LIMITS)
      const [sha256, sha1, md5] = ['sha256', 'sha1', 'md5'].map(algorithm => digestOf(algorithm, body)) as [
        string,
        string,
        string,
      ]
      expect(read).toMatchObject({ outcome: 'read', size: body.length, digests: { sha256, sha1, md5 } })
      if (read.outcome === 'read' && body.length <= LIMITS.keepBytes) expect(read.bytes?.equals(body)).toBe(true)
      if (read.outcome === 'read' && body.length > LIMITS.keepBytes) expect(read.bytes).toBeUndefined()
      const again: Buffer[] = []
      for await (const chunk of sameBytes(store, pieces, { sha256, size: body.length })) again.push(chunk)
      expect(Buffer.concat(again).equals(body)).toBe(true)
    }),
  )
})

it('reports a part that has changed since it was sent', async () => {
  await fc.assert(
    fc.asyncProperty(cutMap, async ({ objects, pieces, store }) => {
      const index = pieces.length - 1
      objects.set(`part-${index}`, Buffer.from('changed'))
      expect(await readMapBytes(store, pieces, LIMITS)).toEqual({ outcome: 'other', index })
      objects.delete(`part-${index}`)
      expect(await readMapBytes(store, pieces, LIMITS)).toEqual({ outcome: 'gone' })
    }),
  )
})

it('stops reading a map that would cost too much to parse, before its end', async () => {
  const store = storeOf(new Map([['costly', Buffer.from(`[${'{},'.repeat(200)}{}]`)]]))
  let bytes = 0
  const take = (count: number) => {
    bytes += count
    return true
  }
  expect(await readMapBytes(store, [{ key: 'costly' }], { ...LIMITS, take })).toEqual({ outcome: 'too_costly' })
  expect(bytes).toBeLessThan(150)
})

it('stops reading when no further bytes may be taken', async () => {
  const store = storeOf(new Map([['large', Buffer.alloc(500)]]))
  let left = 100
  const take = (bytes: number) => {
    left -= bytes
    return left >= 0
  }
  expect(await readMapBytes(store, [{ key: 'large' }], { ...LIMITS, take })).toEqual({ outcome: 'out_of_budget' })
  expect(left).toBeGreaterThan(-10)
})

it('stops reading at the limit of a map', async () => {
  const store = storeOf(new Map([['large', Buffer.alloc(LIMITS.maxBytes + 1)]]))
  expect(await readMapBytes(store, [{ key: 'large' }], LIMITS)).toEqual({ outcome: 'too_large' })
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
