import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { type DeadLetter, type StoredLetter, storedLetterSchema } from '../../schemas/queues/dead-letters.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { decodeLetter } from '../../shared/queue/letters/letter-object.ts'
import { decodePayload, encodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Move } from '../queue/payloads/payload-store.ts'
import type { TakenJob } from '../queue/pool.ts'
import { type StoreDeadLettersDeps, storeDeadLetters } from './store-dead-letters.ts'

const DESCRIPTION: DeadLetter = {
  queue: 'traces',
  jobId: 'job',
  index: 0,
  reason: 'truncated',
  refusedAtMs: 1_790_000_000_500,
  storedTables: [],
  rejected: [],
  storedRecords: 0,
  attributes: '',
}

function letter(index: number, description: Partial<DeadLetter> = {}, frame: Partial<PayloadFrame> = {}): PayloadFrame {
  return {
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    receivedAtMs: Date.UTC(2026, 10, 20),
    contentType: 'application/x-protobuf',
    contentEncoding: 'gzip',
    attributes: JSON.stringify({ ...DESCRIPTION, index, ...description }),
    body: randomBytes(20),
    ...frame,
  }
}

const JOB: TakenJob = { jobId: 'dead-1', lane: 'express', token: 't', payloadBytes: 100, losses: 0 }

interface KeptObject {
  readonly body: Buffer
  readonly metadata: Readonly<Record<string, string>>
}

/** Sets up a job of these letters. `refuse` throws the error with which the store answers a put. */
function setUp(frames: PayloadFrame[], refuse: (key: string, body: Buffer) => void = () => {}) {
  const objects = new Map<string, KeptObject>()
  const puts: string[] = []
  let moves: readonly Move[] = []
  const deps: StoreDeadLettersDeps = {
    objects: {
      async put(key, body, { metadata = {} }) {
        puts.push(key)
        refuse(key, body)
        objects.set(key, { body, metadata })
      },
    },
    store: {
      look: async () => ({ batchId: null, payload: encodePayload(frames) }),
      holdsLocks: async () => true,
      finishJob: async (_jobId, _done, given = []) => {
        moves = given
        return { isFirst: true, leftOut: [] }
      },
      giveBack() {},
    },
    memory: new Budget(1_000_000),
    addJobs: async () => {},
    logger: pino({ level: 'silent' }),
    stopping: new AbortController().signal,
  }
  const read = ({ objectKey, offset, length }: StoredLetter) => {
    const object = objects.get(objectKey)
    return object && decodeLetter(object.body.subarray(offset, offset + length), object.metadata)
  }
  return {
    objects,
    puts,
    read,
    run: () => storeDeadLetters(deps, JOB),
    moves: () => moves.map(({ queue, jobId }) => [queue, jobId]),
    index: () =>
      moves.flatMap(({ payload }) =>
        decodePayload(payload).map(frame => ({ frame, row: storedLetterSchema.parse(JSON.parse(String(frame.body))) })),
      ),
  }
}

describe('a job of dead letters', () => {
  it('becomes one object for each surface and day, in which each letter can be read alone', async () => {
    const frames = Array.from({ length: 500 }, (_, i) => letter(i, {}, { surfaceId: `srf_${i % 2}` }))
    frames.push(letter(500, {}, { surfaceId: 'srf_1', receivedAtMs: Date.UTC(2026, 10, 21) }))
    const { run, objects, index, read, moves } = setUp(frames)
    await run()
    expect([...objects.keys()].sort()).toEqual([
      'dead-letters/ws_1/srf_0/traces/2026-11-20/dead-1',
      'dead-letters/ws_1/srf_1/traces/2026-11-20/dead-1',
      'dead-letters/ws_1/srf_1/traces/2026-11-21/dead-1',
    ])
    expect(moves()).toEqual([['dead-letter-index', 'letters-dead-1']])
    const rows = index()
    expect(rows.map(({ row }) => row.index).sort((a, b) => a - b)).toEqual(frames.map((_, i) => i))
    for (const { row } of rows) expect(read(row)).toMatchObject(frames[row.index] as PayloadFrame)
  })

  it('keeps attributes of any length, the receipt, and what of the request is stored', async () => {
    const attributes = JSON.stringify({ sessionId: 's 1', windowId: '窓'.repeat(5_000) })
    const rejected = [{ reason: 'invalid_span_id', count: 2, indexes: [0, 7] }]
    const described = { storedTables: ['spans'], rejected, storedRecords: 9, reason: 'truncated: at 7' }
    const frame = letter(3, { ...described, attributes }, { receipt: 'receipt of 16 by' })
    const { run, index, read } = setUp([frame])
    await run()
    const [indexed] = index()
    expect(indexed?.frame).toMatchObject({ workspaceId: 'ws_1', surfaceId: 'srf_1', receipt: 'receipt of 16 by' })
    expect(indexed?.row).toMatchObject({ ...described, sessionId: 's 1', bodyBytes: 20 })
    expect(read(indexed?.row as StoredLetter)).toMatchObject(frame)
  })

  it('repeats only the object that could not be written', async () => {
    let failures = 3
    const frames = Array.from({ length: 6 }, (_, i) => letter(i, {}, { surfaceId: `srf_${i}` }))
    const { run, puts, objects } = setUp(frames, key => {
      if (key.includes('srf_4') && failures-- > 0) throw new TransientError('unavailable')
    })
    await run()
    expect(objects.size).toBe(6)
    expect(puts.filter(key => !key.includes('srf_4'))).toHaveLength(5)
  })

  it('writes the same objects when it is processed again', async () => {
    const { run, objects } = setUp([letter(0), letter(1, {}, { surfaceId: 'srf_2' })])
    await run()
    const first = new Map(objects)
    objects.clear()
    await run()
    expect(new Map(objects)).toEqual(first)
  })
})

describe('a letter that the object store refuses permanently', () => {
  const tooLarge = (_key: string, body: Buffer) => {
    if (body.length > 1_000) throw new PermanentError('EntityTooLarge')
  }

  it('does not keep the others from being stored, and is in the index without an object', async () => {
    const frames = [letter(0), letter(1, {}, { body: randomBytes(2_000) }), letter(2)]
    const { run, index, read } = setUp(frames, tooLarge)
    await run()
    const rows = index().map(({ row }) => row)
    expect(rows.map(row => read(row)?.body)).toEqual([frames[0]?.body, undefined, frames[2]?.body])
    expect(rows[1]).toMatchObject({ index: 1, objectKey: '', offset: 0, length: 0, bodyBytes: 2_000 })
  })
})

it('keeps a letter whose attributes it cannot read', async () => {
  const frame = letter(0, {}, { attributes: 'not JSON' })
  const { run, index, read } = setUp([frame])
  await run()
  const [indexed] = index()
  expect(indexed?.row).toMatchObject({ queue: 'dead-letters', reason: expect.stringMatching(/^invalid_request: /) })
  expect(read(indexed?.row as StoredLetter)).toMatchObject(frame)
})

it('does not index a letter of the index again, which could repeat without end', async () => {
  const { run, objects, index } = setUp([letter(0, { queue: 'dead-letter-index' })])
  await run()
  expect([objects.size, index()]).toEqual([1, []])
})
