import { expect, it } from 'vitest'
import type { PayloadFrame } from '../shared/payload-frame.ts'
import { createBatch } from './batch.ts'
import type { RowBatch } from './row-batch.ts'

const frame: PayloadFrame = {
  workspaceId: 'ws_1',
  surfaceId: 'srf_1',
  receivedAtMs: 0,
  contentType: 'application/x-protobuf',
  contentEncoding: 'identity',
  attributes: '',
  body: Buffer.alloc(1_000),
}

const nothing: RowBatch = {
  rows: 0,
  bytes: 0,
  append: () => ({ ok: true, rows: 0, rejected: {} }),
  tables: () => [],
  reset() {},
}

it('counts the payloads that it holds, also those without a row', async () => {
  const batch = createBatch('traces', nothing)
  for (const jobId of ['a', 'b']) await batch.add({ jobId, token: '' }, [frame], 1_040, Number.POSITIVE_INFINITY)
  expect(batch.bytes).toBe(2_080)
})

it('does not decode a job further than it may, but always one request of it', async () => {
  const add = (frames: PayloadFrame[], limit: number) =>
    createBatch('traces', nothing).add({ jobId: 'a', token: '' }, frames, 1_040, limit)
  expect(await add([frame], 10)).toBeDefined()
  expect(await add([frame, frame], 1_000)).toBeDefined()
  expect(await add([frame, frame], 999)).toBeUndefined()
})
