import { pino } from 'pino'
import { expect, it } from 'vitest'
import { TextBatch } from '../../test/support/oracles/text-batch.ts'
import type { Move, PayloadStore } from '../queue/payload-store.ts'
import { Batch } from './batch.ts'
import { BatchStorer } from './store-batch.ts'

const FRAME = {
  workspaceId: 'ws_1',
  surfaceId: 'srf_1',
  receivedAtMs: 0,
  contentType: 'application/json',
  contentEncoding: 'identity',
  attributes: '',
  body: Buffer.from('{}'),
} as const

it.each([
  ['counts as made', false, 1],
  ['does not count as made when it was left out because its queue is too far behind', true, 0],
])('a request to symbolicate %s', async (_, isLeftOut, times) => {
  let finished = 0
  const rows = Object.assign(new TextBatch(), { stackRequests: () => [FRAME], finished: () => finished++ })
  const store = {
    holdsLocks: async () => true,
    finishBatch: async (_batch: unknown, _done: unknown, moves: readonly Move[]) => ({
      isFirst: true,
      leftOut: isLeftOut ? moves.filter(({ queue }) => queue === 'symbolication') : [],
    }),
  } as unknown as PayloadStore
  const storer = new BatchStorer({
    queue: 'spans',
    kind: 'traces',
    store,
    insert: async () => {},
    addJobs: async () => {},
    logger: pino({ level: 'silent' }),
    stopping: new AbortController().signal,
  })
  const named = { batchId: 'b', jobIds: ['a'], storedTables: [] }
  expect(await storer.store(named, new Batch({ queue: 'spans', kind: 'traces' }, rows), [])).toBe(true)
  expect(finished).toBe(times)
})
