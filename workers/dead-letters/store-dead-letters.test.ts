import { expect, it } from 'vitest'
import type { DeadLetter } from '../../schemas/queues/jobs.ts'
import type { ObjectStore, PutOptions } from '../../shared/object-store/types.ts'
import { encodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { PayloadStore } from '../queue/payload-store.ts'
import { storeDeadLetters } from './store-dead-letters.ts'

function letter(index: number, reason: string): PayloadFrame {
  const attributes: DeadLetter = { queue: 'spans', jobId: 'job', index, reason, attributes: '' }
  return {
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    receivedAtMs: 0,
    contentType: 'application/x-protobuf',
    contentEncoding: 'identity',
    attributes: JSON.stringify(attributes),
    body: Buffer.from(String(index)),
  }
}

function setUp(frames: PayloadFrame[]) {
  const objects = new Map<string, PutOptions>()
  let finished = 0
  let stored = 0
  let failing: string | undefined
  let putting = 0
  let mostAtOnce = 0
  const objectStore: Pick<ObjectStore, 'put'> = {
    async put(key, body, options) {
      mostAtOnce = Math.max(mostAtOnce, ++putting)
      await new Promise(setImmediate)
      putting--
      if (body.toString() === failing) throw new Error('no space')
      objects.set(key, options)
    },
  }
  const store = {
    look: async () => ({ batchId: null, payload: encodePayload(frames) }),
    finishJob: async () => ({ isFirst: ++finished > 0, leftOut: [] }),
  } as Partial<PayloadStore> as PayloadStore
  return {
    objects,
    run: (bad?: string) => {
      failing = bad
      return storeDeadLetters({ objects: objectStore, store, onStored: () => stored++ }, 'dead-1')
    },
    counts: () => ({ finished, stored, mostAtOnce, putting }),
  }
}

it('stores every dead letter, 16 at a time, and reports its progress', async () => {
  const { run, objects, counts } = setUp(Array.from({ length: 500 }, (_, i) => letter(i, 'truncated')))
  await run()
  expect(objects.size).toBe(500)
  expect(counts()).toEqual({ finished: 1, stored: 500, mostAtOnce: 16, putting: 0 })
})

it('does not finish the job while one dead letter cannot be stored, and stores the others', async () => {
  const { run, objects, counts } = setUp(Array.from({ length: 100 }, (_, i) => letter(i, 'truncated')))
  await expect(run('7')).rejects.toThrow('no space')
  expect(objects.size).toBe(99)
  expect(counts()).toMatchObject({ finished: 0, putting: 0 })
  await run()
  expect(counts()).toMatchObject({ finished: 1 })
})

it.each([
  ['is cut between characters', '🚰'.repeat(400)],
  ['is cut at a character with a long encoding', 'é€'.repeat(400)],
  ['is not well-formed', `half ${'🚰'.slice(0, 1)} a tap`],
])('a reason that %s fits the metadata of S3', async (_case, reason) => {
  const { run, objects } = setUp([letter(0, reason)])
  await run()
  const [options] = objects.values()
  const text = decodeURIComponent(options?.metadata?.reason ?? '')
  expect(reason.toWellFormed().startsWith(text)).toBe(true)
  expect(text).not.toBe('')
  expect(Object.entries(options?.metadata ?? {}).join('').length).toBeLessThan(1_024)
})
