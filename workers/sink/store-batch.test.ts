import { ClickHouseError } from '@clickhouse/client'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { encodePayload } from '../../shared/queue/payload-frame.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { TextBatch } from '../../test/support/oracles/text-batch.ts'
import type { Move, PayloadStore } from '../queue/payloads/payload-store.ts'
import { CONDEMN_AFTER, RepeatedFailures } from '../queue/repeated-failures.ts'
import { Batch } from './batch.ts'
import { NO_JOB_LIMITS } from './job-limits.ts'
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

it('a request to symbolicate does not count as made when it was left out because its queue is too far behind', async () => {
  const leftOut: string[][] = []
  const other = { ...FRAME, workspaceId: 'ws_2', surfaceId: 'srf_2' }
  const rows = Object.assign(new TextBatch(), {
    stackRequests: () => [FRAME, other],
    finished: (surfaces: ReadonlySet<string>) => void leftOut.push([...surfaces]),
  })
  const store = {
    holdsLocks: async () => true,
    describeBatch: async (_batch: unknown, formed: unknown) => formed,
    finishBatch: async (_batch: unknown, _done: unknown, moves: readonly Move[]) => ({
      isFirst: true,
      leftOut: moves.filter(({ shares }) => shares.has('ws_2/srf_2')),
    }),
  } as unknown as PayloadStore
  const storer = new BatchStorer({
    queue: 'traces',
    kind: 'traces',
    store,
    insert: async () => {},
    burnToken: async () => new Set(),
    failures: new RepeatedFailures(),
    condemnAfter: CONDEMN_AFTER,
    addJobs: async () => {},
    logger: pino({ level: 'silent' }),
    stopping: new AbortController().signal,
  })
  const named = { batchId: 'b', jobIds: ['a'], storedTables: [] }
  expect(await storer.store(named, new Batch({ queue: 'traces', kind: 'traces' }, rows), [])).toBe(true)
  expect(leftOut).toEqual([['ws_2/srf_2']])
})

it('logs the code of a refused batch, and the text of ClickHouse, which may quote values, only for debugging', async () => {
  const lines: { level: number; text: string }[] = []
  const logger = pino(
    { level: 'debug' },
    { write: line => void lines.push({ level: JSON.parse(line).level, text: line }) },
  )
  const message = `Cannot parse 'a secret of a customer'`
  const refusal = new PermanentError('ClickHouse 27 CANNOT_PARSE', {
    cause: new ClickHouseError({ message, code: '27', type: 'CANNOT_PARSE' }),
  })
  const store = {
    holdsLocks: async () => true,
    describeBatch: async (_batch: unknown, formed: unknown) => formed,
    payload: async () => encodePayload([FRAME]),
    giveBack: () => {},
    finishBatch: async () => ({ isFirst: true, leftOut: [] }),
  } as unknown as PayloadStore
  const storer = new BatchStorer({
    queue: 'traces',
    kind: 'traces',
    store,
    insert: async ({ table }) => {
      if (table === 'ingest_log') return
      throw refusal
    },
    burnToken: async () => new Set(),
    failures: new RepeatedFailures(),
    condemnAfter: CONDEMN_AFTER,
    addJobs: async () => {},
    logger,
    stopping: new AbortController().signal,
  })
  const batch = new Batch({ queue: 'traces', kind: 'traces' }, new TextBatch())
  await batch.add({ jobId: 'a', lane: 'express', token: '' }, [FRAME], 1, NO_JOB_LIMITS)
  expect(await storer.store({ batchId: 'b', jobIds: ['a'], storedTables: [] }, batch, [])).toBe(true)
  const levelsOf = (part: string) => new Set(lines.filter(({ text }) => text.includes(part)).map(({ level }) => level))
  expect(levelsOf('ClickHouse 27')).toContain(pino.levels.values.warn)
  expect(levelsOf('a secret')).toEqual(new Set([pino.levels.values.debug]))
})
