import { expect, it } from 'vitest'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { Batch } from './batch.ts'
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

it('copies refused requests out of their payload and counts their bytes', async () => {
  const refusing = { ...nothing, append: () => ({ ok: false, reason: 'truncated' }) as const }
  const payload = Buffer.alloc(1_000, 'a')
  const batch = new Batch({ queue: 'spans', kind: 'traces' }, refusing)
  for (const jobId of ['a', 'b']) {
    await batch.add(
      { jobId, lane: 'express', token: '' },
      [{ ...frame, body: payload }],
      1_040,
      Number.POSITIVE_INFINITY,
    )
  }
  payload.fill('b') // the next payload uses its memory
  expect(batch.refused.map(({ frame: refused }) => refused.body)).toEqual(Array(2).fill(Buffer.alloc(1_000, 'a')))
  expect(batch.bytes).toBe(2_000)
  const taking = new Batch({ queue: 'spans', kind: 'traces' }, nothing)
  await taking.add({ jobId: 'a', lane: 'express', token: '' }, [frame], 1_040, Number.POSITIVE_INFINITY)
  expect(taking.bytes).toBe(0)
})

it('stops decoding a job at the limit, but always decodes its first request', async () => {
  const add = (frames: PayloadFrame[], limit: number) =>
    new Batch({ queue: 'spans', kind: 'traces' }, nothing).add(
      { jobId: 'a', lane: 'express', token: '' },
      frames,
      1_040,
      limit,
    )
  expect(await add([frame], 10)).toBeDefined()
  expect(await add([frame, frame], 1_000)).toBeDefined()
  expect(await add([frame, frame], 999)).toBeUndefined()
})
