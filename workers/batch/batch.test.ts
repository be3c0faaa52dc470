import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { createLogsBatch } from '../otlp/logs/logs.ts'
import { Batch } from './batch.ts'
import { JOB_LIMITS, JOB_RESERVE_BYTES, type JobLimits, NO_JOB_LIMITS } from './job-limits.ts'
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
  capacityBytes: 0,
  append: () => ({ ok: true, rows: 0, rejected: {} }),
  markJob() {},
  rewindJob() {},
  tables: () => [],
  reset() {},
  shrink() {},
}

it('copies refused requests out of their payload and counts their bytes', async () => {
  const refusing = { ...nothing, append: () => ({ ok: false, reason: 'truncated' }) as const }
  const payload = Buffer.alloc(1_000, 'a')
  const batch = new Batch({ queue: 'spans', kind: 'traces' }, refusing)
  for (const jobId of ['a', 'b']) {
    await batch.add({ jobId, lane: 'express', token: '' }, [{ ...frame, body: payload }], 1_040, NO_JOB_LIMITS)
  }
  payload.fill('b') // the next payload uses its memory
  expect(batch.refused.map(({ frame: refused }) => refused.body)).toEqual(Array(2).fill(Buffer.alloc(1_000, 'a')))
  expect(batch.bytes).toBe(2_000)
  const taking = new Batch({ queue: 'spans', kind: 'traces' }, nothing)
  await taking.add({ jobId: 'a', lane: 'express', token: '' }, [frame], 1_040, NO_JOB_LIMITS)
  expect(taking.bytes).toBe(0)
})

it('stops decoding a job at the limit, but always decodes its first request', async () => {
  const add = (frames: PayloadFrame[], maxDecodedBytes: number) => {
    const batch = new Batch({ queue: 'spans', kind: 'traces' }, nothing)
    return batch.add({ jobId: 'a', lane: 'express', token: '' }, frames, 1_040, { ...NO_JOB_LIMITS, maxDecodedBytes })
  }
  expect(await add([frame], 10)).toMatchObject({ frames: 1 })
  expect(await add([frame, frame], 1_000)).toMatchObject({ frames: 2 })
  expect(await add([frame, frame], 999)).toBe('split')
})

/** A gzipped export of empty log records: 2 bytes each, and 125 in the columns. */
function emptyRecords(count: number): PayloadFrame {
  const records = Buffer.alloc(count * 2, Buffer.from([0x12, 0]))
  const body = gzipSync(message(0x0a, message(0x12, records)))
  return { ...frame, contentEncoding: 'gzip', body }
}

function message(tag: number, content: Buffer): Buffer {
  const length: number[] = []
  for (let rest = content.length; rest > 0; rest >>>= 7) length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

describe('a job of requests that amplify', () => {
  const MIB = 1024 * 1024
  const job = { jobId: 'a', lane: 'express', token: '' } as const

  it('refuses each request whose rows need far more memory than its bytes', async () => {
    const rows = createLogsBatch()
    const batch = new Batch({ queue: 'logs', kind: 'logs' }, rows)
    const bomb = emptyRecords(2_000_000)
    expect(bomb.body.length).toBeLessThan(5_000)
    const good = emptyRecords(1)
    expect(await batch.add(job, [good, ...Array(40).fill(bomb), good], 1, { ...NO_JOB_LIMITS })).toMatchObject({
      frames: 42,
    })
    expect(batch.refused.map(({ reason }) => reason.label)).toEqual(Array(40).fill('rows_too_large'))
    expect(rows.rows).toBe(2)
    expect(rows.capacityBytes).toBeLessThan(16 * MIB)
  })

  it('is split when its rows pass the bound of a job, and leaves nothing behind', async () => {
    const rows = createLogsBatch()
    const batch = new Batch({ queue: 'logs', kind: 'logs' }, rows)
    await batch.add(job, [emptyRecords(10)], 1, JOB_LIMITS)
    const before = [rows.rows, batch.bytes, batch.stats.rows]
    expect(await batch.add(job, Array(40).fill(emptyRecords(120_000)), 1, JOB_LIMITS)).toBe('split')
    expect([rows.rows, batch.bytes, batch.stats.rows]).toEqual(before)
    expect(rows.capacityBytes).toBeLessThan(2 * JOB_RESERVE_BYTES)
    rows.shrink()
    expect(rows.capacityBytes).toBeLessThan(MIB)
  })

  it('runs alone when it has one request with a large body, and is split otherwise', async () => {
    const add = (frames: PayloadFrame[], limits: JobLimits) =>
      new Batch({ queue: 'logs', kind: 'logs' }, createLogsBatch()).add(job, frames, 1, limits)
    const text = message(0x2a, message(0x0a, Buffer.alloc(7 * MIB, 'a')))
    const body = message(0x0a, message(0x12, message(0x12, text)))
    for (const large of [{ ...frame, body }, { ...frame, contentEncoding: 'gzip', body: gzipSync(body) } as const]) {
      expect(await add([large], JOB_LIMITS)).toBe('large')
      expect(await add([frame, large], JOB_LIMITS)).toBe('split')
      expect(await add([large], { ...JOB_LIMITS, maxBodyBytes: Number.POSITIVE_INFINITY })).toMatchObject({ frames: 1 })
    }
  })
})
