import { afterAll, beforeEach, expect, it } from 'vitest'
import { purgeLetters } from '../../../letters/purge-letters.ts'
import { replayLetters } from '../../../letters/replay-letters.ts'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { MIB } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { connectLetters, traceFrame } from '../../support/dead-letters.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/3`
const database = await createTestDatabase(services.clickhouseUrl, `replayed_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const letters = connectLetters(services, redisUrl, clickhouse)
const QUEUES: readonly QueueName[] = [
  'traces',
  'logs',
  'metrics',
  'exceptions',
  'dead-letters',
  'dead-letter-index',
  'receipts',
]
let pools: TestPools | undefined
let surface: { workspaceId: string; surfaceId: string }

beforeEach(async () => {
  await stop()
  await letters.redis.flushdb()
  for (const table of ['spans', 'exceptions']) {
    await clickhouse.command({ query: `ALTER TABLE ${table} DROP CONSTRAINT IF EXISTS refused` })
  }
  surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
})

afterAll(async () => {
  await stop()
  await letters.close()
  await clickhouse.close()
  await database.drop()
})

async function stop(): Promise<void> {
  await pools?.stop()
  pools = undefined
}

function start(): void {
  pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
}

const done = () => letters.untilDone(...QUEUES)

/** An export with one span for each name. */
function exportOf(names: readonly string[], traceIds: readonly string[] = []): Buffer {
  const spans = names.map((name, i) => ({ traceId: traceIds[i] ?? '1'.repeat(32), spanId: '2'.repeat(16), name }))
  return Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }))
}

const spanNames = async () =>
  (
    await database.rows<{ name: string }>(
      `SELECT name FROM spans WHERE workspace_id = '${surface.workspaceId}' ORDER BY name`,
    )
  ).map(({ name }) => name)

/** Makes ClickHouse refuse every insert into a table until the returned function is called. */
async function refuse(table: string): Promise<() => Promise<void>> {
  await clickhouse.command({ query: `ALTER TABLE ${table} ADD CONSTRAINT refused CHECK workspace_id = ''` })
  return async () => {
    await clickhouse.command({ query: `ALTER TABLE ${table} DROP CONSTRAINT refused` })
  }
}

it('stores a letter once, with its arrival and receipt, however often it is replayed (replay-letters.lua)', async () => {
  const accept = await refuse('spans')
  const frame = traceFrame(surface, exportOf(['a', 'b']), { receivedAtMs: Date.UTC(2026, 10, 20, 12) })
  await letters.enqueue('traces', 'job', [frame])
  start()
  await done()
  expect(await letters.list(surface.workspaceId)).toMatchObject([{ outcome: 'dead', reason: 'refused_by_clickhouse' }])
  await accept()
  const both = await Promise.all([letters.replayAll(surface.workspaceId), letters.replayAll(surface.workspaceId)])
  expect(both.toSorted()).toEqual([0, 1])
  await done()
  expect(await spanNames()).toEqual(['a', 'b'])
  expect(await letters.replayAll(surface.workspaceId)).toBe(0)
  expect(await letters.list(surface.workspaceId)).toMatchObject([
    { outcome: 'stored', attempt: 1, jobId: 'job', index: 0 },
  ])
  const log = await database.rows(
    `SELECT toUnixTimestamp64Milli(received_at) AS at, hex(receipt_commit) AS commit, replayed_at > 0 AS replayed,
            rows, mapValues(dead_lettered) AS dead
     FROM ingest_log WHERE workspace_id = '${surface.workspaceId}' ORDER BY replayed_at`,
  )
  const commit = Buffer.from(frame.receipt ?? '', 'latin1')
    .toString('hex')
    .slice(0, 24)
    .toUpperCase()
  const at = frame.receivedAtMs
  expect(log).toMatchObject([
    { at, commit, replayed: 0, rows: 0, dead: [1] },
    { at, commit, replayed: 1, rows: 2, dead: [] },
  ])
})

it('is the same letter again when it fails again, and is stored by a later replay', async () => {
  const accept = await refuse('spans')
  await letters.enqueue('traces', 'job', [traceFrame(surface, exportOf(['a']))])
  start()
  await done()
  const [first] = await letters.list(surface.workspaceId)
  expect(await letters.replayAll(surface.workspaceId)).toBe(1)
  await done()
  const [again, ...others] = await letters.list(surface.workspaceId)
  expect(others).toEqual([])
  expect(again).toMatchObject({ outcome: 'dead', attempt: 1, objectKey: first?.objectKey, offset: first?.offset })
  await accept()
  expect(await letters.replayAll(surface.workspaceId)).toBe(1)
  await done()
  expect(await spanNames()).toEqual(['a'])
  expect(await letters.list(surface.workspaceId)).toMatchObject([{ outcome: 'stored', attempt: 2 }])
})

it('replays only the exceptions that were refused, and the receipt of their request tells both', async () => {
  const accept = await refuse('exceptions')
  const events = [{ name: 'exception', timeUnixNano: '1', attributes: [] }]
  const span = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), name: 'a', events, status: { code: 2 } }
  const body = Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }))
  await letters.enqueue('traces', 'job', [traceFrame(surface, body)])
  start()
  await done()
  expect(await letters.list(surface.workspaceId)).toMatchObject([
    { queue: 'exceptions', outcome: 'dead', storedTables: [], reason: 'refused_by_clickhouse' },
  ])
  expect(await spanNames()).toEqual(['a'])
  await accept()
  expect(await letters.replayAll(surface.workspaceId)).toBe(1)
  await done()
  expect(await spanNames()).toEqual(['a'])
  const found = await database.rows(`SELECT * FROM exceptions WHERE workspace_id = '${surface.workspaceId}'`)
  expect(found).toHaveLength(1)
  expect(await letters.list(surface.workspaceId)).toMatchObject([{ outcome: 'stored', attempt: 1 }])
  const log = await database.rows(
    `SELECT sum(payloads) AS requests, sum(rows) AS spans, sum(derived_rows) AS exceptions, sum(length(refused)) AS dead,
            arrayFlatten(groupArray(mapKeys(dead_lettered))) AS labels
     FROM ingest_log WHERE workspace_id = '${surface.workspaceId}' GROUP BY replayed_at > 0 AS is_replayed
     ORDER BY is_replayed`,
  )
  expect(log).toEqual([
    { requests: 1, spans: 1, exceptions: 0, dead: 1, labels: ['exceptions_not_stored'] },
    { requests: 1, spans: 0, exceptions: 1, dead: 0, labels: [] },
  ])
})

it('replays only the records that are not stored', async () => {
  const zero = '0'.repeat(32)
  const body = exportOf(['a', 'bad', 'c'], ['1'.repeat(32), zero, '1'.repeat(32)])
  await letters.enqueue('traces', 'job', [traceFrame(surface, body)])
  start()
  await done()
  expect(await spanNames()).toEqual(['a', 'c'])
  expect(await letters.replayAll(surface.workspaceId)).toBe(1)
  await done()
  // The record breaks the rule still. The others are not stored again.
  expect(await spanNames()).toEqual(['a', 'c'])
  const [letter] = await letters.list(surface.workspaceId)
  const rejected = [{ reason: 'invalid_trace_id', count: 1, indexes: [1] }]
  expect(letter).toMatchObject({ outcome: 'dead', attempt: 1, reason: 'records_rejected', storedRecords: 2, rejected })
})

it('replays only the records that the letter names, of each signal', async () => {
  const [traceId, spanId] = ['1'.repeat(32), '2'.repeat(16)]
  const events = [{ name: 'exception', timeUnixNano: '1', attributes: [] }]
  const spansOf = (...names: string[]) => names.map(name => ({ traceId, spanId, name, events }))
  const exception = { key: 'exception.type', value: { stringValue: 'E' } }
  const logsOf = (...names: string[]) =>
    names.map(name => ({ body: { stringValue: name }, attributes: [exception], severityNumber: 17 }))
  const point = (name: string) => ({ attributes: [{ key: 'name', value: { stringValue: name } }] })
  const pointsOf = (...names: string[]) => ({ dataPoints: names.map(point) })
  const metrics = [
    { name: 'g', gauge: pointsOf('a', 'b') },
    { name: 'h', histogram: pointsOf('c') },
  ]
  const others = [
    { name: 's', sum: pointsOf('d', 'e') },
    { name: 'e', exponentialHistogram: pointsOf('f') },
    { name: 'q', summary: pointsOf('g') },
  ]
  // The positions count over all resources, scopes and metrics.
  const signals: [QueueName, table: string, name: string, body: object][] = [
    [
      'traces',
      'spans',
      'name',
      {
        resourceSpans: [
          { scopeSpans: [{ spans: spansOf('a', 'b') }, { spans: spansOf('c') }] },
          { scopeSpans: [{ spans: spansOf('d', 'e', 'f', 'g') }] },
        ],
      },
    ],
    [
      'logs',
      'logs',
      'body',
      {
        resourceLogs: [
          { scopeLogs: [{ logRecords: logsOf('a', 'b') }, { logRecords: logsOf('c') }] },
          { scopeLogs: [{ logRecords: logsOf('d', 'e', 'f', 'g') }] },
        ],
      },
    ],
    [
      'metrics',
      'metric_points',
      'attribute_values',
      { resourceMetrics: [{ scopeMetrics: [{ metrics }] }, { scopeMetrics: [{ metrics: others }] }] },
    ],
  ]
  start()
  for (const [queue, table, name, body] of signals) {
    const rejected = {
      invalid_trace_id: { count: 3, indexes: [0, 2, 5] },
      invalid_span_id: { count: 1, indexes: [6] },
    }
    const frame = traceFrame(surface, Buffer.from(JSON.stringify(body)))
    await letters.refuse(queue, `job-${queue}`, [frame], { rejected, storedRecords: 3 })
    await done()
    expect(await letters.replayAll(surface.workspaceId)).toBe(1)
    await done()
    const ofSurface = `WHERE workspace_id = '${surface.workspaceId}'`
    const rows = await database.rows<{ n: string }>(`SELECT ${name} AS n FROM ${table} ${ofSurface} ORDER BY n`)
    expect(rows.map(({ n }) => n).join(), table).toMatch(/^"?a"?,"?c"?,"?f"?,"?g"?$/)
    const [letter] = await letters.list(surface.workspaceId, { queue })
    expect(letter).toMatchObject({ outcome: 'stored', attempt: 1, rejected: [] })
  }
  // Exceptions derive from the replayed spans and logs alone.
  const found = await database.rows(`SELECT * FROM exceptions WHERE workspace_id = '${surface.workspaceId}'`)
  expect(found).toHaveLength(8)
})

it('stores a replayed letter once if its worker dies after the insert', async () => {
  const accept = await refuse('spans')
  await letters.enqueue('traces', 'job', [traceFrame(surface, exportOf(['a']))])
  start()
  await done()
  await accept()
  await stop()
  await letters.replayAll(surface.workspaceId)
  const keys = queueKeys('traces')
  expect(await letters.redis.zcard(keys.pending)).toBe(1)
  // A second replay meanwhile, and one by an installation that has not seen the outcome of the first.
  expect(await letters.replayAll(surface.workspaceId)).toBe(0)
  start()
  await done()
  expect(await spanNames()).toEqual(['a'])
})

it('leaves room for the requests of clients, and continues where it stopped', async () => {
  const bodies = Array.from({ length: 300 }, (_, i) => traceFrame(surface, exportOf([`span ${i}`.padEnd(40_000, ' ')])))
  for (let job = 0; job < 3; job++)
    await letters.refuse('traces', `job-${job}`, bodies.slice(job * 100, (job + 1) * 100))
  start()
  await done()
  await stop()
  const signal = AbortSignal.timeout(30_000)
  const step = { limit: 500 }
  const first = await replayLetters(letters.deps, surface.workspaceId, { filter: {} }, step, signal)
  expect(first.isBusy).toBe(true)
  expect(first.replayed).toBeGreaterThan(50)
  expect(first.replayed).toBeLessThan(300)
  const cost = await letters.redis.zscore(queueKeys('traces').shares, `${surface.workspaceId}/${surface.surfaceId}`)
  expect(Number(cost)).toBeLessThanOrEqual(16 * MIB)
  start()
  await letters.replayAll(surface.workspaceId)
  await done()
  expect(new Set(await spanNames()).size).toBe(300)
  expect(await spanNames()).toHaveLength(300)
})

it('is not purged while a replay of it waits, but is purged if the replay was lost (purge-letters.lua)', async () => {
  await letters.enqueue('traces', 'job', [traceFrame(surface, Buffer.from('{'))])
  start()
  await done()
  await stop()
  expect(await letters.replayAll(surface.workspaceId)).toBe(1)
  const keys = await letters.list(surface.workspaceId)
  const purge = () =>
    purgeLetters(letters.deps, surface.workspaceId, { keys }, { limit: 10 }, AbortSignal.timeout(10_000))
  expect(await purge()).toMatchObject({ purged: 0, skipped: [{ reason: 'replaying' }] })
  start()
  await done()
  // The row with the outcome is lost.
  await clickhouse.command({ query: 'DELETE FROM dead_letters WHERE attempt = 1' })
  expect(await letters.list(surface.workspaceId)).toMatchObject([{ attempt: 0 }])
  expect(await letters.replayAll(surface.workspaceId)).toBe(0)
  expect(await purge()).toMatchObject({ purged: 1, skipped: [] })
  expect(await letters.list(surface.workspaceId)).toEqual([])
})

it('does not replay the letters of another workspace', async () => {
  await letters.enqueue('traces', 'job', [traceFrame(surface, Buffer.from('{'))])
  start()
  await done()
  const [letter] = await letters.list(surface.workspaceId)
  const keys = letter ? [letter] : []
  const other = await replayLetters(letters.deps, newId('ws'), { keys }, { limit: 10 }, AbortSignal.timeout(10_000))
  expect(other).toMatchObject({ replayed: 0, skipped: [{ reason: 'not_found' }], next: undefined })
})
