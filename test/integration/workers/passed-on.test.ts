import { pino } from 'pino'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { tableOfUnit } from '../../../clickhouse/cluster/shard-units.ts'
import { MIB, MINUTE_MS } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { decodePayload } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { readWatermarks, redisTimeMs } from '../../../shared/queue/watermark.ts'
import { TransientError } from '../../../shared/runtime/errors.ts'
import { createExceptionsBatch } from '../../../workers/exceptions/exceptions-batch.ts'
import { acceptJson, createJsonTranscoder } from '../../../workers/otlp/json/transcode-json.ts'
import { createSpansBatch } from '../../../workers/otlp/traces/spans.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { sweep } from '../../../workers/queue/sweep.ts'
import { createSpanStatsBatch } from '../../../workers/span-stats/stats-batch.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { connectLetters, traceFrame } from '../../support/dead-letters.ts'
import { onOneServer, queueOn } from '../../support/queue-on.ts'
import { startTestPool } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/5`
const database = await createTestDatabase(services.clickhouseUrl, `exceptions_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const letters = connectLetters(services, redisUrl, clickhouse)
const { redis } = letters
const opened: (() => Promise<unknown>)[] = []
let surface: { workspaceId: string; surfaceId: string }

beforeEach(async () => {
  await redis.flushdb()
  surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
})
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})
afterAll(async () => {
  await letters.close()
  await clickhouse.close()
  await database.drop()
})

const PLANS = {
  traces: {
    kind: 'traces',
    createRows: () => acceptJson('traces', createSpansBatch(), createJsonTranscoder()),
  },
  exceptions: { kind: 'exceptions', createRows: createExceptionsBatch },
  'span-stats': { kind: undefined, createRows: createSpanStatsBatch },
} as const

/** Starts a pool. It ends when `isDeath` is true of an insert, or of the finish that follows the inserts. */
function worker(
  queue: keyof typeof PLANS,
  isDeath: (table: string, moment: 'before' | 'after') => boolean = () => false,
) {
  const pool = startTestPool(
    {
      ...{ queue, ...PLANS[queue], lockMs: 500 },
      wrapInsert: insert => async (block, token) => {
        die(tableOfUnit(block.table), 'before')
        await insert(block, token)
        die(tableOfUnit(block.table), 'after')
      },
    },
    { ...services, redisUrl },
    database.name,
  )
  const die = (table: string, moment: 'before' | 'after') => {
    if (!isDeath(table, moment)) return
    pool.stopping.abort()
    throw new TransientError('the worker has ended')
  }
  const finishBatch = pool.store.finishBatch.bind(pool.store)
  pool.store.finishBatch = async (...finished) => {
    die('finish', 'before')
    const result = await finishBatch(...finished)
    die('finish', 'after')
    return result
  }
  opened.push(pool.close)
  return { ...pool, untilDead: () => until('the worker has ended', () => pool.stopping.signal.aborted) }
}

const START = 1_790_000_000_000_000_000n

/** An export of spans, of which each has an exception with a message of this many characters; 0 for none. */
function exportOf(spans: number, characters: number): Buffer {
  const value = (i: number) => ({ stringValue: `${i} ${'x'.repeat(characters)}` })
  const events = (i: number) =>
    characters === 0
      ? []
      : [
          {
            name: 'exception',
            attributes: [
              { key: 'exception.type', value: { stringValue: 'E' } },
              { key: 'exception.message', value: value(i) },
            ],
          },
        ]
  const all = Array.from({ length: spans }, (_, i) => ({
    ...{ traceId: '1'.repeat(32), spanId: (i + 1).toString(16).padStart(16, '0'), name: `span ${i}` },
    ...{ startTimeUnixNano: String(START), endTimeUnixNano: String(START + BigInt(i)), events: events(i) },
  }))
  return Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: all }] }] }))
}

const isEmpty = async (queue: keyof typeof PLANS) => (await redis.zcard(queueKeys(queue).pending)) === 0

/** Returns what is stored of the workspace, and what its log states. */
async function stored() {
  const of = `WHERE workspace_id = '${surface.workspaceId}'`
  const [rows] = await database.rows(`
    SELECT (SELECT count() FROM spans ${of}) AS spans, (SELECT count() FROM exceptions ${of}) AS exceptions,
      (SELECT uniqExact(message) FROM exceptions ${of}) AS distinct,
      (SELECT sum(occurrence_count) FROM findings ${of}) AS occurrences,
      (SELECT (sum(spans), sum(duration_sum_nano)) FROM span_stats ${of}) AS counted,
      (SELECT (sum(payloads), sum(rows), sum(derived_rows), arraySort(groupArrayArray(receipt_indexes)))
       FROM ingest_log ${of}) AS logged`)
  return rows
}

// A piece is written by write-piece.lua.
it.each([
  ['traces', 'spans', 'before'],
  ['traces', 'spans', 'after'],
  ['traces', 'ingest_log', 'after'],
  ['traces', 'finish', 'before'],
  ['traces', 'finish', 'after'],
  ['exceptions', 'exceptions', 'before'],
  ['exceptions', 'exceptions', 'after'],
  ['exceptions', 'ingest_log', 'after'],
  ['exceptions', 'finish', 'before'],
  ['span-stats', 'span_stats', 'before'],
  ['span-stats', 'span_stats', 'after'],
  ['span-stats', 'finish', 'before'],
] as const)('are stored once when a worker of %s dies at %s, %s', async (name, step, moment) => {
  const frames = [exportOf(3, 10), exportOf(2, 0)].map(body => traceFrame(surface, body))
  await letters.enqueue('traces', 'job', frames)
  if (name !== 'traces') {
    const traces = worker('traces')
    await until('the spans are stored', () => isEmpty('traces'))
    await traces.close()
  }
  const first = worker(name, (table, at) => table === step && at === moment)
  await first.untilDead()
  await first.close()
  const later = () => Date.now() + MINUTE_MS
  for (const tag of ['exceptions', 'span-stats'] as const) {
    const queue = queueOn(redis, tag)
    await sweep({ queue, common: redis, logger: pino({ level: 'silent' }), addJobs: letters.addJobs, now: later })
  }
  worker('traces')
  worker('exceptions')
  worker('span-stats')
  await letters.enqueue('traces', 'next', [traceFrame(surface, exportOf(1, 10))])
  await until('everything is stored', async () => {
    const empty = await Promise.all((['traces', 'exceptions', 'span-stats'] as const).map(isEmpty))
    return empty.every(Boolean)
  })
  expect(await stored()).toEqual({
    ...{ spans: 6, exceptions: 4, distinct: 3, occurrences: 4, counted: [6, 4] },
    logged: [3, 6, 4, [0, 0, 0]],
  })
  // Pieces that the first worker has written and not moved expire.
  for (const tag of ['exceptions', 'span-stats'] as const) {
    for (const key of await redis.keys(`${queueKeys(tag).payloadPrefix.replace('payload:', 'arriving:')}*`)) {
      expect(await redis.ttl(key)).toBeGreaterThan(0)
    }
  }
})

it('leave in pieces of at most 1 MiB, and settle their request when all are stored', async () => {
  await letters.enqueue('traces', 'job', [traceFrame(surface, exportOf(500, 6_000))])
  const acceptedMs = await redisTimeMs(redis)
  const traces = worker('traces')
  const settled = async () =>
    (await readWatermarks(onOneServer(redis), [surface])).surfaces[0]?.settledBeforeMs.traces ?? 0
  await until('the spans are stored', () => isEmpty('traces'))
  await traces.close()
  const { pending } = queueKeys('exceptions')
  const pieces = await redis.zrange(pending, '0', '-1')
  expect(pieces.length).toBeGreaterThan(2)
  const store = new RedisPayloadStore(queueOn(redis, 'exceptions'))
  for (const jobId of pieces) {
    const payload = (await store.payload(jobId)) as Buffer
    expect(payload.length).toBeLessThanOrEqual(MIB)
    expect(decodePayload(payload)).toMatchObject([surface])
  }
  expect(await settled()).toBeLessThanOrEqual(acceptedMs)
  expect(await stored()).toMatchObject({ spans: 500, exceptions: 0, logged: [0, 500, 0, []] })
  worker('exceptions')
  await until('the exceptions are stored', () => isEmpty('exceptions'))
  expect(await settled()).toBeGreaterThan(acceptedMs)
  expect(await stored()).toEqual({
    ...{ spans: 500, exceptions: 500, distinct: 500, occurrences: 500 },
    ...{ counted: [0, 0], logged: [1, 500, 500, [0]] },
  })
})
