import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { deadLetterSchema } from '../../schemas/queues/dead-letters.ts'
import { MIB } from '../../schemas/units.ts'
import { decodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { readBlock, rowsOf } from '../../test/support/oracles/read-block.ts'
import { createLogsBatch } from '../otlp/logs/logs.ts'
import { Batch, type BatchSource } from './batch.ts'
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

const OBJECT_KEY = 'dead-letters/ws_1/srf_1/traces/1970-01-01/dead-batch'
const SPANS: BatchSource = { queue: 'traces', kind: 'traces' }
const refusing: RowBatch = { ...nothing, append: () => ({ ok: false, reason: 'truncated' }) }
const add = (batch: Batch, frames: PayloadFrame[], jobId = 'a') =>
  batch.add({ jobId, lane: 'express', token: '' }, frames, 1_040, NO_JOB_LIMITS)

/** Returns the dead letters of a batch: their frames, and what their attributes describe. */
function lettersOf(batch: Batch) {
  return batch.letters.moves().flatMap(({ payload }) =>
    decodePayload(payload).map(letter => ({
      ...letter,
      letter: deadLetterSchema.parse(JSON.parse(letter.attributes)),
    })),
  )
}

/** Returns the only row of the log of a batch. */
function logOf(batch: Batch) {
  const block = batch.tables().find(({ table }) => table === 'ingest_log')
  const [row, ...others] = block ? rowsOf(readBlock(Buffer.concat(block.block))) : []
  expect(others).toEqual([])
  return row
}

it('copies refused requests out of their payload and counts their bytes', async () => {
  const payload = Buffer.alloc(1_000, 'a')
  const batch = new Batch(SPANS, refusing)
  for (const jobId of ['a', 'b']) await add(batch, [{ ...frame, body: payload }], jobId)
  payload.fill('b') // the next payload uses its memory
  expect(lettersOf(batch).map(({ body }) => body)).toEqual(Array(2).fill(Buffer.alloc(1_000, 'a')))
  expect(batch.bytes).toBeGreaterThan(2_000)
  expect(batch.bytes).toBeLessThan(3_000)
  const taking = new Batch(SPANS, nothing)
  await add(taking, [frame])
  expect(taking.bytes).toBe(0)
})

it('fails the job of a request for which memory is short, refuses nothing, and keeps the other jobs', async () => {
  const rows = createLogsBatch()
  const append = rows.append.bind(rows)
  let isShort = false
  const scarce = Object.assign(rows, {
    append: (...args: Parameters<RowBatch['append']>) => {
      const result = append(...args)
      if (isShort) throw new RangeError('Array buffer allocation failed')
      return result
    },
  })
  const batch = new Batch({ queue: 'logs', kind: 'logs' }, scarce)
  const empty = { ...frame, body: Buffer.alloc(0) }
  await add(batch, [empty], 'a')
  const before = batch.formation()
  isShort = true
  await expect(add(new Batch({ queue: 'logs', kind: 'logs' }, scarce), [empty], 'b')).rejects.toThrow(TransientError)
  await expect(add(batch, [empty], 'b')).rejects.toThrow(TransientError)
  expect(lettersOf(batch)).toEqual([])
  expect(batch.jobs.map(({ jobId }) => jobId)).toEqual(['a'])
  expect(batch.formation()).toEqual(before)
})

describe('a request with records that break a rule', () => {
  const receipt = `${'c'.repeat(12)}\0\0\0\x07`
  const rejected = { invalid_span_id: { count: 2, indexes: [1, 4] }, exceptions_over_limit: { count: 3, indexes: [] } }
  const leavingOut = (rows: number): RowBatch => ({ ...nothing, append: () => ({ ok: true, rows, rejected }) })

  it('is stored without them and becomes a dead letter that names them', async () => {
    const batch = new Batch(SPANS, leavingOut(5), { id: 'batch' })
    await add(batch, [{ ...frame, receipt, attributes: '{"a":1}' }])
    const [letter] = lettersOf(batch)
    expect(letter).toMatchObject({ body: frame.body, receipt })
    expect(letter?.letter).toMatchObject({
      queue: 'traces',
      jobId: 'a',
      index: 0,
      reason: 'records_rejected',
      rejected: [
        { reason: 'invalid_span_id', count: 2, indexes: [1, 4] },
        { reason: 'exceptions_over_limit', count: 3, indexes: [] },
      ],
      storedRecords: 5,
      attributes: '{"a":1}',
    })
    expect(logOf(batch)).toMatchObject({
      rejections: [
        { index: 7, reason: 'invalid_span_id', records: 2n, object_key: OBJECT_KEY },
        { index: 7, reason: 'exceptions_over_limit', records: 3n, object_key: OBJECT_KEY },
      ],
      refused: [],
    })
    expect(batch.stats).toMatchObject({ rows: 5, refused: 0 })
  })

  it('counts as refused if no record is stored', async () => {
    const batch = new Batch(SPANS, leavingOut(0), { id: 'batch' })
    await add(batch, [{ ...frame, receipt }])
    expect(logOf(batch)).toMatchObject({
      refused: [{ index: 7, reason: 'records_rejected', object_key: OBJECT_KEY }],
    })
    expect(batch.stats.refused).toBe(1)
  })

  it('is counted and not kept over the bound of its surface', async () => {
    const batch = new Batch({ ...SPANS, letterQuota: { admit: async () => [false] } }, leavingOut(5))
    await add(batch, [{ ...frame, receipt }])
    expect(lettersOf(batch)).toEqual([])
    expect(logOf(batch)).toMatchObject({
      rejections: [
        { index: 7, reason: 'invalid_span_id', records: 2n, object_key: '' },
        { index: 7, reason: 'exceptions_over_limit', records: 3n, object_key: '' },
      ],
      discarded_indexes: [7],
      refused: [],
    })
  })
})

it('keeps no body of a request over the bound of its surface, and notes that it is discarded', async () => {
  const receipt = `${'c'.repeat(12)}\0\0\0\x07`
  const batch = new Batch({ ...SPANS, letterQuota: { admit: async () => [false] } }, refusing)
  await add(batch, [{ ...frame, receipt }])
  expect(batch.bytes).toBeLessThan(100)
  expect(batch.letters.moves()).toEqual([])
  expect(logOf(batch)).toMatchObject({
    refused: [{ index: 7, reason: 'truncated', object_key: '' }],
    discarded_indexes: [7],
  })
})

it('gives the dead letters of a batch that is formed again the same object keys', async () => {
  const keysOf = async () => {
    const batch = new Batch(SPANS, refusing, { id: 'batch' })
    const large = { ...frame, body: Buffer.alloc(5 * MIB) }
    await add(batch, [frame, large, large, frame])
    return batch.letters.moves().map(({ jobId, frames }) => [jobId, frames])
  }
  expect(await keysOf()).toEqual([
    ['dead-batch', 2],
    ['dead-batch-1', 2],
  ])
  expect(await keysOf()).toEqual(await keysOf())
})

it('stops decoding a job at the limit, but always decodes its first request', async () => {
  const add = (frames: PayloadFrame[], maxDecodedBytes: number) => {
    const batch = new Batch({ queue: 'traces', kind: 'traces' }, nothing)
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
    expect(lettersOf(batch).map(({ letter }) => letter.reason)).toEqual(Array(40).fill('rows_too_large'))
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
