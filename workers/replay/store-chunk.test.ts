import { hash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { replayKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectHead, PutOptions } from '../../shared/object-store/types.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { inspectChunk } from './inspect-chunk.ts'
import { type StoreChunkDeps, storeChunk } from './store-chunk.ts'

const EVENT = '{"type":2,"timestamp":5}'
const UPLOAD = { sessionId: 's', windowId: 'w', segmentId: '0', firstTs: 1, lastTs: 9 }

function frame(fields: Partial<PayloadFrame> = {}): PayloadFrame {
  return {
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    receivedAtMs: Date.UTC(2026, 10, 20),
    contentType: 'application/octet-stream',
    contentEncoding: 'identity',
    attributes: JSON.stringify(UPLOAD),
    body: Buffer.from(EVENT),
    ...fields,
  }
}

/** Creates an object store in memory. Each put throws the next of the `faults` after it has stored its object. */
function setUp(faults: Error[] = []) {
  const objects = new Map<string, { body: Buffer; options: { -readonly [K in keyof PutOptions]: PutOptions[K] } }>()
  const deps: StoreChunkDeps = {
    objects: {
      async putIfAbsent(key, body, options) {
        const outcome = objects.has(key) ? 'exists' : 'stored'
        if (outcome === 'stored') objects.set(key, { body, options: { ...options } })
        const fault = faults.shift()
        if (fault) throw fault
        return outcome
      },
      async head(key): Promise<ObjectHead | undefined> {
        const object = objects.get(key)
        const { contentType = '', metadata = {} } = object?.options ?? {}
        return object && { size: object.body.length, contentType, metadata, etag: 'e' }
      },
    },
    inspect: inspectChunk,
    async retry(_operation, work) {
      for (;;) {
        try {
          return await work()
        } catch (error) {
          if (error instanceof PermanentError) throw error
        }
      }
    },
  }
  return { deps, objects }
}

it('stores gzip unchanged and other chunks gzipped, and returns their facts', async () => {
  const { deps, objects } = setUp()
  const stored = await storeChunk(deps, 'job', 3, frame())
  expect(stored).toMatchObject({ outcome: 'stored', chunk: { firstEventMs: 5, lastEventMs: 5, hasFullSnapshot: true } })
  const key = replayKey({ workspaceId: 'ws_1', surfaceId: 'srf_1', ...UPLOAD })
  expect(gunzipSync(objects.get(key)?.body as Buffer).toString()).toBe(EVENT)
  expect(objects.get(key)?.options.metadata).toMatchObject({ payload: 'job-3', 'window-id': 'w' })
})

it.each(['gzip', 'identity'] as const)(
  'stores the whole lines of a truncated chunk in %s, and counts the rest',
  async encoding => {
    const { deps, objects } = setUp()
    const text = `${EVENT}\n{"type":`
    const sent = frame({ contentEncoding: encoding, body: encoding === 'gzip' ? gzipSync(text) : Buffer.from(text) })
    expect(await storeChunk(deps, 'job', 0, sent)).toMatchObject({ outcome: 'stored', chunk: { truncatedLines: 1 } })
    const [object] = objects.values()
    expect(gunzipSync(object?.body as Buffer).toString()).toBe(`${EVENT}\n`)
    expect(object?.options).toMatchObject({ sha256: undefined })
    expect(await storeChunk(deps, 'other', 0, sent)).toEqual({ outcome: 'repeated', truncatedLines: 1 })
  },
)

describe('an object that already exists', () => {
  it('belongs to the upload when the response to its put was lost', async () => {
    const { deps, objects } = setUp([new TransientError('no response')])
    expect(await storeChunk(deps, 'job', 0, frame())).toMatchObject({ outcome: 'stored', chunk: { eventCount: 1 } })
    expect(objects.size).toBe(1)
  })

  it('belongs to the upload when an earlier attempt has stored it', async () => {
    const { deps } = setUp()
    const first = await storeChunk(deps, 'job', 0, frame())
    expect(await storeChunk(deps, 'job', 0, frame())).toEqual(first)
  })

  it('is described as it is when the rules of scrubbing have changed since an earlier attempt has stored it', async () => {
    const { deps, objects } = setUp()
    const sent = frame({ body: Buffer.from('{"type":2,"timestamp":5,"data":"zorana@example.com"}') })
    const by = (action: 'mask' | 'remove'): StoreChunkDeps => ({
      ...deps,
      inspect: (body, encoding) =>
        inspectChunk(body, encoding, { revision: 1, rules: [{ name: 'r', values: ['email'], action }] }),
    })
    const first = await storeChunk(by('mask'), 'job', 0, sent)
    const [object] = objects.values()
    const text = gunzipSync(object?.body as Buffer).toString()
    expect(text).toBe('{"type":2,"timestamp":5,"data":"[scrubbed]"}')
    expect(first).toMatchObject({ chunk: { decompressedBytes: text.length, sentSha256: hash('sha256', sent.body) } })
    expect(await storeChunk(by('remove'), 'job', 0, sent)).toEqual(first)
    expect(await storeChunk(by('remove'), 'other', 0, sent)).toEqual({ outcome: 'repeated' })
  })

  it('makes the upload a repetition when another upload has stored the same bytes', async () => {
    const { deps } = setUp()
    await storeChunk(deps, 'job', 0, frame())
    const again = frame({ contentEncoding: 'gzip', body: gzipSync(EVENT) })
    expect(await storeChunk(deps, 'job', 1, again)).toEqual({ outcome: 'repeated' })
    expect(await storeChunk(deps, 'other', 0, frame())).toEqual({ outcome: 'repeated' })
  })

  it.each([
    ['the events', ['sent-sha256']],
    ['the bytes as sent', ['sha256']],
  ])('is known for a repetition by the digest of %s alone', async (_, absent) => {
    const { deps, objects } = setUp()
    await storeChunk(deps, 'job', 0, frame())
    for (const { options } of objects.values()) {
      options.metadata = Object.fromEntries(
        Object.entries(options.metadata ?? {}).filter(([name]) => !absent.includes(name)),
      )
    }
    expect(await storeChunk(deps, 'other', 0, frame())).toEqual({ outcome: 'repeated' })
    const other = await storeChunk(deps, 'other', 0, frame({ body: Buffer.from('{}') }))
    expect(other).toMatchObject({ outcome: 'refused', reason: { label: 'replay_conflict' } })
  })

  it('is kept when another upload has other bytes', async () => {
    const { deps } = setUp()
    await storeChunk(deps, 'job', 0, frame())
    const other = await storeChunk(deps, 'other', 0, frame({ body: Buffer.from('{}') }))
    expect(other).toEqual({ outcome: 'refused', reason: { label: 'replay_conflict', detail: expect.any(String) } })
  })

  it('makes the job start over when it is deleted meanwhile', async () => {
    const { deps } = setUp()
    const gone: StoreChunkDeps = {
      ...deps,
      objects: { putIfAbsent: async () => 'exists', head: async () => undefined },
    }
    await expect(storeChunk(gone, 'job', 0, frame())).rejects.toThrow(TransientError)
  })
})

it('refuses a chunk that the object store refuses permanently', async () => {
  const { deps } = setUp([new PermanentError('S3 MetadataTooLarge')])
  expect(await storeChunk(deps, 'job', 0, frame())).toEqual({
    outcome: 'refused',
    reason: { label: 'refused_by_object_store', detail: 'S3 MetadataTooLarge' },
  })
})

it('cuts texts that are too long for the metadata of an object', async () => {
  const { deps, objects } = setUp()
  const long = { ...UPLOAD, windowId: '😀'.repeat(1_000), segmentId: 'é'.repeat(1_000) }
  await storeChunk(deps, 'job', 0, frame({ attributes: JSON.stringify(long) }))
  const [object] = objects.values()
  const entries = Object.entries(object?.options.metadata ?? {})
  expect(entries.flat().join('').length).toBeLessThan(2_000)
  expect('😀'.repeat(1_000)).toContain(decodeURIComponent(object?.options.metadata?.['window-id'] as string))
})
