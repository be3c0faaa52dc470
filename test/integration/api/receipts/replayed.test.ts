import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import type { LetterAnswer, LettersAnswer, LettersReplayed } from '../../../../schemas/http/dead-letters.ts'
import type { Receipt } from '../../../../schemas/http/receipts.ts'
import type { QueueName } from '../../../../schemas/queues/names.ts'
import { connectLetters, traceFrame } from '../../../support/dead-letters.ts'
import { call } from '../../../support/services/api.ts'
import { until } from '../../../support/until.ts'
import {
  api,
  browse,
  build,
  clickhouse,
  database,
  LINE,
  objects,
  redisUrl,
  release,
  type Sent,
  services,
  settled,
  span,
  surfaceId,
  token,
  uploadChunk,
  workspaceId,
} from './fixture.ts'

const letters = connectLetters(services, redisUrl, clickhouse)
afterAll(() => letters.close())

const ask = (operation: string, body?: unknown) => call(api.baseUrl, operation, { bearer: token, body })

/** Waits until a queue has one letter that is not stored, and returns it. */
function deadLetter(queue: QueueName): Promise<LettersAnswer['deadLetters'][number]> {
  return until(`a letter of ${queue}`, async () => {
    const { deadLetters } = (await ask(`GET /v3/dead-letters?state=dead&queue=${queue}`)).body as LettersAnswer
    expect(deadLetters.length).toBeLessThan(2)
    return deadLetters[0]
  })
}

async function show(id: string) {
  return ((await ask(`GET /v3/dead-letters/${id}`)).body as LetterAnswer).deadLetter
}

async function replay(id: string): Promise<LettersReplayed> {
  return (await ask('POST /v3/dead-letters/replay', { ids: [id] })).body as LettersReplayed
}

/** Waits until the replay of a letter has failed. */
async function isDead(id: string): Promise<void> {
  await until('the letter is dead again', async () => (await show(id)).state === 'dead')
  expect((await show(id)).attempts.map(({ outcome }) => outcome)).toEqual(['dead', 'dead'])
}

/** Waits until this many outcomes of replays are known, and returns the receipt. */
function replayed(sent: Sent, replays: number): Promise<Receipt> {
  return until(`${replays} replays of ${sent.receiptId}`, async () => {
    const receipt = await settled(sent)
    return (receipt.history?.length ?? 0) > 2 * replays ? receipt : undefined
  })
}

function stepsOf({ history = [] }: Receipt): string[] {
  const times = history.map(({ at }) => at)
  expect(times).toEqual(times.toSorted())
  return history.map(({ status, reason }) => (reason === undefined ? status : `${status} ${reason}`))
}

async function count(from: string): Promise<number> {
  const [row] = await database.rows<{ n: string }>(`SELECT count() AS n FROM ${from}`)
  return Number(row?.n)
}

/** Makes ClickHouse refuse rows of a table until the returned function is called, or the test ends. */
async function refuse(table: string, accepted = "workspace_id = ''"): Promise<() => Promise<void>> {
  await clickhouse.command({ query: `ALTER TABLE ${table} ADD CONSTRAINT refused CHECK ${accepted}` })
  const accept = async () => {
    await clickhouse.command({ query: `ALTER TABLE ${table} DROP CONSTRAINT IF EXISTS refused` })
  }
  onTestFinished(accept)
  return accept
}

const log = (...spanIds: string[]) =>
  JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: spanIds.map(spanId => ({ spanId })) }] }] })
const histograms = (...counts: string[][]) => {
  const dataPoints = counts.map(bucketCounts => ({ explicitBounds: [1], bucketCounts }))
  const metrics = [{ name: 'm', histogram: { aggregationTemporality: 2, dataPoints } }]
  return JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
}
const PERSON = '{"sessionId":"s","identifier":"i","source":{"type":"custom","name":"n"}}'

const DEAD = 'dead_lettered refused_by_clickhouse'

describe('the receipt of a replayed request', () => {
  it.each<[QueueName, table: string, send: () => Promise<Sent>]>([
    ['traces', 'spans', () => browse('POST /drain/v1/traces', span('a'))],
    ['logs', 'logs', () => browse('POST /drain/v1/logs', log(''))],
    ['metrics', 'metric_points', () => browse('POST /drain/v1/metrics', histograms(['1', '2']))],
    ['sessions', 'session_identities', () => browse('POST /v3/session/identify', PERSON)],
    ['sessions', 'session_heartbeats', () => browse('POST /v3/session', '{"sessionId":"s"}')],
    ['replay-chunks', 'replay_chunks', () => uploadChunk(1)],
    ['build-reports', 'build_reports', () => build(`POST /v3/releases/${release}/telemetry`, '{"upload":1}')],
  ])('has each step, and its row is stored once: queue %s, table %s', async (queue, table, send) => {
    const accept = await refuse(table)
    const sent = await send()
    expect(await settled(sent)).toMatchObject({ status: 'dead_lettered', reason: 'refused_by_clickhouse' })
    const { id } = await deadLetter(queue)
    expect(await show(id)).toMatchObject({ isReplayable: true, replays: 0 })
    expect(await replay(id)).toMatchObject({ replayed: 1, skipped: [] })
    const again = await replayed(sent, 1)
    expect(again).toMatchObject({ status: 'dead_lettered', reason: 'refused_by_clickhouse' })
    expect(stepsOf(again)).toEqual([DEAD, 'replayed', DEAD])
    await isDead(id)
    await accept()
    expect(await replay(id)).toMatchObject({ replayed: 1, skipped: [] })
    const stored = await replayed(sent, 2)
    expect(stored).toMatchObject({ status: 'stored', storedAt: stored.history?.at(-1)?.at })
    expect(stored).not.toHaveProperty('reason')
    expect(stepsOf(stored)).toEqual([DEAD, 'replayed', DEAD, 'replayed', 'stored'])
    expect(await count(table)).toBe(1)
    if (queue === 'sessions' || queue === 'replay-chunks') {
      // So that the letter is erased with its session.
      expect(await count(`dead_letters WHERE queue = '${queue}' AND session_id = ''`)).toBe(0)
    }
    await until('the letter is stored', async () => (await show(id)).state === 'replayed')
    expect(await show(id)).toMatchObject({ isReplayable: false, replays: 2 })
    expect((await replay(id)).skipped).toEqual([{ id, reason: 'replayed' }])
  })

  it('has each step of a replay chunk that other bytes were in the way of', async () => {
    expect(await settled(await uploadChunk(2, LINE + LINE))).toMatchObject({ status: 'stored' })
    const sent = await uploadChunk(2)
    expect(await settled(sent)).toMatchObject({ status: 'dead_lettered' })
    const { id } = await deadLetter('replay')
    await replay(id)
    expect((await replayed(sent, 1)).status).toBe('dead_lettered')
    await isDead(id)
    const prefix = `replays/${workspaceId}/${surfaceId}/session-1/w/2`
    for await (const page of objects.list(prefix)) await objects.deleteMany(page.map(({ key }) => key))
    expect(await replay(id)).toMatchObject({ replayed: 1 })
    const steps = stepsOf(await replayed(sent, 2)).map(step => step.split(':')[0])
    const dead = 'dead_lettered replay_conflict'
    expect(steps).toEqual([dead, 'replayed', dead, 'replayed', 'stored'])
    expect(await count("replay_chunks WHERE segment_id = '2' AND event_count = 1")).toBe(1)
  })

  it('stays stored if the records break their rule again, and no other record is stored twice', async () => {
    const parts: [QueueName, table: string, reason: string, path: string, body: string][] = [
      ['logs', 'logs', 'invalid_span_id', 'logs', log('', 'ab', '')],
      ['metrics', 'metric_points', 'invalid_bucket_counts', 'metrics', histograms(['1', '2'], ['1'], ['3', '4'])],
    ]
    for (const [queue, table, reason, path, body] of parts) {
      const before = await count(table)
      const sent = await browse(`POST /drain/v1/${path}`, body)
      const rejected = [{ reason, count: 1 }]
      const first = await settled(sent)
      expect(first).toMatchObject({ status: 'stored', rejected })
      const { id } = await deadLetter(queue)
      expect(await show(id)).toMatchObject({ storedRecords: 2, rejected: [{ reason, count: 1, indexes: [1] }] })
      await replay(id)
      const receipt = await replayed(sent, 1)
      expect(receipt).toMatchObject({ status: 'stored', storedAt: first.storedAt, rejected })
      expect(stepsOf(receipt)).toEqual(['stored', 'replayed', 'dead_lettered records_rejected'])
      expect((await count(table)) - before, table).toBe(2)
    }
  })

  it('is no longer queued once the row of its outcome is replayed', async () => {
    const accept = await refuse('ingest_log', "signal != 'replay'")
    const sent = await uploadChunk(3, '{} no JSON lines')
    const letter = await deadLetter('receipts')
    expect(await deadLetter('replay')).toMatchObject({ reason: 'not_json_lines' })
    await accept()
    expect(await show(letter.id)).toMatchObject({ isReplayable: true })
    expect(await replay(letter.id)).toMatchObject({ replayed: 1 })
    const receipt = await settled(sent)
    expect(receipt).toMatchObject({ status: 'dead_lettered', reason: expect.stringMatching(/^not_json_lines/) })
    expect(receipt).not.toHaveProperty('history')
  })
})

it.each<[QueueName, attributes: object]>([
  ['source-maps', { kind: 'part', slug: release, path: 'a.map', part: 0, sha256: '0'.repeat(64) }],
  ['completions', { slug: release, attempt: 'a', digest: '0'.repeat(64) }],
  ['symbolication', {}],
])('a letter of the queue %s is not replayable: who waits for it asks again', async (queue, attributes) => {
  const frame = traceFrame({ workspaceId, surfaceId }, Buffer.from('{}'), { attributes: JSON.stringify(attributes) })
  await letters.refuse(queue, `job-${queue}`, [frame])
  const { id } = await deadLetter(queue)
  expect(await show(id)).toMatchObject({ isReplayable: false, contentType: 'application/json' })
  expect(await replay(id)).toEqual({ replayed: 0, skipped: [{ id, reason: 'not_replayable' }], nextCursor: null })
  expect((await show(id)).attempts).toHaveLength(1)
})
