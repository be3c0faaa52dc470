import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { assessCompleteness } from '../../../../api/traces/completeness/assess-completeness.ts'
import { beginEvidence } from '../../../../api/traces/completeness/load-evidence.ts'
import { connectTraceQueues } from '../../../../api/traces/completeness/trace-queues.ts'
import { loadWaterfall } from '../../../../api/traces/load-columns.ts'
import { onFirstShard } from '../../../../clickhouse/client.ts'
import { deleteCountedRows } from '../../../../clickhouse/queries/retention/delete-counted-rows.ts'
import { HOUR_MS, MINUTE_MS } from '../../../../schemas/units.ts'
import { onOneServer } from '../../../support/queue-on.ts'
import { insertSpans } from '../../../support/services/api.ts'
import { until } from '../../../support/until.ts'
import { client, hex, letters, newWorkspace, QUEUES, restartPools, stopPools } from './completeness-fixture.ts'

const COMMIT = 'c'.repeat(12)

/** A workspace with a whole trace of one span, of which the log and the letters are what the test inserts. */
async function withSpan() {
  const workspace = await newWorkspace()
  const { workspaceId, surfaceId, traceId } = workspace
  const receivedAt = Date.now() - 2 * HOUR_MS
  const startTimeUnixNano = BigInt(receivedAt) * 1_000_000n
  const stored = { workspaceId, surfaceId, traceId, receivedAt, startTimeUnixNano, endTimeUnixNano: startTimeUnixNano }
  await insertSpans(client, [{ ...stored, spanId: hex(1) }])
  const common = { workspace_id: workspaceId, surface_id: surfaceId }
  const insert = (table: string, ...rows: readonly object[]) =>
    onFirstShard(client, shard =>
      shard.insert({
        table,
        format: 'JSONEachRow',
        values: rows.map(row => ({ ...common, ...row })),
        clickhouse_settings: { date_time_input_format: 'best_effort', async_insert: 0 },
      }),
    )
  const time = (ms: number) => new Date(ms).toISOString()
  return {
    ...workspace,
    receivedAt,
    stored,
    insert,
    /** Adds requests of a job to the log of what was stored. */
    log: (row: object | readonly object[], atMs = receivedAt) => {
      const entry = { received_at: time(atMs), job_id: 'a', signal: 'traces', receipt_commit: COMMIT, payloads: 1 }
      return insert('ingest_log', ...[row].flat().map(each => ({ ...entry, ...each })))
    },
    /** Adds a dead letter, or an attempt to replay one. */
    letter: (row: object, atMs = receivedAt) =>
      insert('dead_letters', {
        ...{ received_at: time(atMs), refused_at: time(atMs), queue: 'traces', job_id: 'a', job_index: 0 },
        ...{ receipt: `${COMMIT}0000`, reason: 'invalid_tag' },
        ...row,
      }),
  }
}

const replayed = { attempt: 1, outcome: 'stored' }
const hasNoGaps = (...reasons: string[]) => ({ state: 'no_gaps', reasons })
const isComplete = { state: 'complete', reasons: [], losses: [] }

describe('losses of a trace', () => {
  it.each([
    ['expired', 0],
    ['erased', 0],
    // Its other spans may have arrived in the hour before the first that it still has.
    ['expired', HOUR_MS],
  ] as const)('are spans of its hour that were deleted: %s', async (reason, beforeMs) => {
    const { workspaceId, stored, receivedAt, completeness } = await withSpan()
    const others = { ...stored, receivedAt: receivedAt - beforeMs, parentSpanId: hex(1) }
    await insertSpans(client, [{ ...others, spanId: hex(2), name: 'leaf' }])
    expect(await completeness()).toMatchObject(isComplete)
    const deletion = { where: "workspace_id = {workspaceId: String} AND name = 'leaf'", params: { workspaceId } }
    const counted = { ...deletion, table: 'spans', isSource: true, reason, id: workspaceId }
    expect(await deleteCountedRows(client, counted, AbortSignal.timeout(30_000))).toBe(1)
    expect(await completeness()).toMatchObject({ ...hasNoGaps(reason), spanCount: 1 })
  })

  it('are spans that are deleted while the trace is read', async () => {
    const { workspaceId, traceId, stored } = await withSpan()
    await insertSpans(client, [{ ...stored, spanId: hex(2), parentSpanId: hex(1), name: 'leaf' }])
    const signal = AbortSignal.timeout(30_000)
    const evidenceDeps = {
      clickhouse: client,
      directory: { dropping: async () => undefined },
      firstKeptDay: async () => 0,
      logger: pino({ level: 'silent' }),
      traceQueues: connectTraceQueues(onOneServer(letters.redis)),
    }
    const key = { workspaceId, traceId }
    const loadEvidence = await beginEvidence(evidenceDeps, key, signal)
    const earlier = await loadWaterfall(client, key, 10, signal)
    if (earlier === undefined) throw new Error('the trace is absent')
    expect(assessCompleteness(earlier, await loadEvidence(earlier.arrivals)).completeness).toMatchObject(isComplete)

    const deletion = { where: "workspace_id = {workspaceId: String} AND name = 'leaf'", params: { workspaceId } }
    const counted = { ...deletion, table: 'spans', isSource: true, reason: 'erased', id: workspaceId } as const
    expect(await deleteCountedRows(client, counted, signal)).toBe(1)
    const later = await loadWaterfall(client, key, 10, signal)
    if (later === undefined) throw new Error('the trace is absent')
    expect(assessCompleteness(later, await loadEvidence(later.arrivals)).completeness).toMatchObject(
      hasNoGaps('erased'),
    )
  })

  it('are rows that arrive while others are deleted, only in hours that are counted', async () => {
    const { workspaceId, traceId, stored, receivedAt, completeness } = await withSpan()
    const other = { ...stored, traceId: 'f'.repeat(32), receivedAt: receivedAt - 5 * HOUR_MS, name: 'leaf' }
    await insertSpans(client, [{ ...other, spanId: hex(8) }])
    // Arrives when those of the other hour are counted, in an hour of its own.
    const late = { ...stored, spanId: hex(9), parentSpanId: hex(1), name: 'leaf' }
    const onCounted = () => insertSpans(client, [late])
    const where = "workspace_id = {workspaceId: String} AND name = 'leaf'"
    const deletion = {
      where,
      params: { workspaceId },
      table: 'spans',
      isSource: true,
      reason: 'erased',
      id: traceId,
    } as const
    const run = (options = {}) => deleteCountedRows(client, { ...deletion, ...options }, AbortSignal.timeout(30_000))
    expect(await run({ onCounted })).toBe(1)
    expect(await completeness()).toMatchObject({ ...isComplete, spanCount: 2 })
    expect(await run()).toBe(1)
    expect(await completeness()).toMatchObject({ ...hasNoGaps('erased'), spanCount: 1 })
  })

  it('are no spans that were deleted at another time, or of another workspace', async () => {
    const { stored, receivedAt, completeness } = await withSpan()
    const other = await withSpan()
    const elsewhere = [
      { ...stored, traceId: 'e'.repeat(32), spanId: hex(2), receivedAt: receivedAt - 3 * HOUR_MS },
      { ...other.stored, spanId: hex(3) },
    ]
    await insertSpans(client, elsewhere)
    for (const { workspaceId, spanId } of elsewhere) {
      const params = { workspaceId, spanId }
      const where = 'workspace_id = {workspaceId: String} AND span_id = unhex({spanId: String})'
      const counted = { where, params, table: 'spans', isSource: true, reason: 'erased' as const, id: workspaceId }
      expect(await deleteCountedRows(client, counted, AbortSignal.timeout(30_000))).toBe(1)
    }
    expect(await completeness()).toMatchObject(isComplete)
  })

  it('are a dead letter until that letter is stored, and not until another is', async () => {
    const { log, letter, receivedAt, completeness } = await withSpan()
    await log({ dead_lettered: { invalid_tag: 1 } })
    await letter({})
    for (const other of [{ job_id: 'b' }, { receipt: 'd'.repeat(16), job_index: 1 }]) {
      await letter({ ...other }, receivedAt)
      await letter({ ...other, ...replayed }, receivedAt)
      expect(await completeness()).toMatchObject(hasNoGaps('dead_lettered'))
    }
    await letter({ ...replayed, outcome: 'dead' })
    expect(await completeness()).toMatchObject(hasNoGaps('dead_lettered'))
    // As if it was stored while the spans are read, which may not have it then.
    await letter({ ...replayed, attempt: 2, indexed_at: new Date(Date.now() + HOUR_MS).toISOString() })
    expect(await completeness()).toMatchObject(hasNoGaps('dead_lettered'))
    await letter({ ...replayed, attempt: 3 })
    expect(await completeness()).toMatchObject(isComplete)
  })

  it('are listed with their surface and time, those of its surfaces within a minute first', async () => {
    const { log, stored, receivedAt, workspaceId, surfaceId, completeness } = await withSpan()
    const iso = (ms: number) => new Date(ms).toISOString()
    const other = { surface_id: 'srf_other', dead_lettered: { invalid_tag: 9 } }
    await log({ ...other, job_id: 'b' })
    await log({ dead_lettered: { invalid_tag: 1 } }, receivedAt + 59_000)
    await log({ discarded: { truncated: 2 }, discarded_indexes: [1, 2], job_id: 'c' }, receivedAt - 59_000)
    await log({ dead_lettered: { invalid_tag: 4 }, job_id: 'd' }, receivedAt + 61_000)
    // Arrived long before.
    await log({ dead_lettered: { invalid_tag: 7 }, job_id: 'e' }, receivedAt - 2 * MINUTE_MS)
    await insertSpans(client, [{ ...stored, traceId: 'd'.repeat(32), spanId: hex(2), name: 'leaf' }])
    const params = { workspaceId }
    const where = "workspace_id = {workspaceId: String} AND name = 'leaf'"
    const deletion = { where, params, table: 'spans', isSource: true, reason: 'erased', id: workspaceId } as const
    expect(await deleteCountedRows(client, deletion, AbortSignal.timeout(30_000))).toBe(1)
    const hour = Math.floor(receivedAt / HOUR_MS) * HOUR_MS
    const lettered = { cause: 'dead_lettered', surfaceId, isNear: true }
    const at = (fromMs: number, toMs = fromMs) => ({ receivedFrom: iso(fromMs), receivedTo: iso(toMs) })
    const { state, losses } = await completeness()
    expect(state).toBe('no_gaps')
    expect(losses).toEqual([
      { ...lettered, count: 3, ...at(receivedAt - 59_000, receivedAt + 59_000) },
      { ...lettered, cause: 'erased', count: 1, ...at(hour, hour + HOUR_MS) },
      { ...lettered, surfaceId: 'srf_other', isNear: false, count: 9, ...at(receivedAt) },
      { ...lettered, isNear: false, count: 4, ...at(receivedAt + 61_000) },
    ])
  })

  it('are listed near ones first also if there are more than are compared', async () => {
    const { log, receivedAt, surfaceId, completeness } = await withSpan()
    const others = Array.from({ length: 1_100 }, (_, i) => ({
      ...{ surface_id: `srf_${i}`, job_id: `${i}`, dead_lettered: { invalid_tag: 2 } },
    }))
    await log(others)
    await log({ job_id: 'near', dead_lettered: { invalid_tag: 1 } }, receivedAt + 1)
    const { losses } = await completeness()
    expect(losses).toHaveLength(20)
    expect(losses[0]).toMatchObject({ surfaceId, isNear: true, count: 1 })
  })

  it('are refusals that clients do not repeat, however many others they repeat', async () => {
    const { insert, receivedAt, completeness } = await withSpan()
    const hour = new Date(Math.floor(receivedAt / HOUR_MS) * HOUR_MS).toISOString()
    const count = { received_hour: hour, signal: 'traces', outcome: 'refused-429', requests: 3 }
    await insert('request_counts', ...Array.from({ length: 1_100 }, (_, i) => ({ ...count, surface_id: `srf_${i}` })))
    expect(await completeness()).toMatchObject(isComplete)
    await insert('request_counts', { ...count, surface_id: 'srf_zz', outcome: 'refused-400' })
    const losses = [{ cause: 'refused', surfaceId: 'srf_zz', isNear: false, count: 3 }]
    expect(await completeness()).toMatchObject({ ...hasNoGaps('refused'), losses })
  })

  it('are a dead letter of a request without a receipt', async () => {
    const { log, letter, completeness } = await withSpan()
    await log({ dead_lettered: { invalid_tag: 1 }, receipt_commit: '' })
    expect(await completeness()).toMatchObject(hasNoGaps('dead_lettered'))
    await letter({ receipt: '', ...replayed })
    expect(await completeness()).toMatchObject(isComplete)
  })

  it('are no occurrences over a limit or refused, whose spans are stored', async () => {
    const { log, letter, completeness } = await withSpan()
    const overLimit = { rejected: { exceptions_over_limit: 3, session_id_too_long: 1 } }
    await log({ ...overLimit, dead_lettered: { records_rejected: 1 } })
    await log({ ...overLimit, discarded: { records_rejected: 1 }, discarded_indexes: [1] })
    await log({ dead_lettered: { exceptions_not_stored: 1 } })
    expect(await completeness()).toMatchObject(isComplete)
    // Another request of the job lacks a span, which its own letter has.
    const both = { exceptions_over_limit: 3, invalid_span_id: 1 }
    await log({ job_id: 'b', rejected: both, dead_lettered: { records_rejected: 2 } })
    await letter({ ...overLimit, job_id: 'b', reason: 'records_rejected' })
    await letter({ job_id: 'b', job_index: 1, reason: 'records_rejected', rejected: { invalid_span_id: 1 } })
    expect(await completeness()).toMatchObject(hasNoGaps('dead_lettered'))
    await letter({ job_id: 'b', job_index: 1, ...replayed })
    expect(await completeness()).toMatchObject(isComplete)
  })

  it('are a record that was left out of a request that is stored', async () => {
    const { store, completeness, untilState } = await newWorkspace()
    await store([{ spanId: 1 }])
    await untilState('complete')
    await store([{ spanId: 2, parent: 1 }, { spanId: 0 }])
    await until('the request is settled', async () => !(await completeness()).reasons.includes('in_flight'))
    expect(await completeness()).toMatchObject({ ...hasNoGaps('dead_lettered'), spanCount: 2 })
  })

  it('are a request that was discarded, which nothing brings back', async () => {
    await stopPools()
    restartPools({ DEAD_LETTER_MAX_COUNT_PER_DAY: '1' })
    const { store, sendBody, workspaceId, completeness, untilState } = await newWorkspace()
    await store([{ spanId: 1 }])
    await untilState('complete')
    const broken = Buffer.concat([gzipSync('{}').subarray(0, 10), Buffer.alloc(20, 0xff)])
    for (let i = 0; i < 2; i++) {
      expect(await sendBody(broken, { 'content-encoding': 'gzip' })).toBe(200)
      await letters.untilDone(...QUEUES)
    }
    await until('the requests are settled', async () => !(await completeness()).reasons.includes('in_flight'))
    expect(await completeness()).toMatchObject(hasNoGaps('dead_lettered'))
    await letters.replayAll(workspaceId)
    await letters.untilDone(...QUEUES)
    expect((await letters.list(workspaceId)).length).toBe(1)
    expect(await completeness()).toMatchObject(hasNoGaps('dead_lettered'))
    await stopPools()
  })
})
