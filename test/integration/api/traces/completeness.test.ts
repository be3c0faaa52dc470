import { describe, expect, it } from 'vitest'
import { onFirstShard } from '../../../../clickhouse/client.ts'
import { DAY_MS, HOUR_MS, HOUR_S } from '../../../../schemas/units.ts'
import { call, insertSpans, startApi } from '../../../support/services/api.ts'
import { until } from '../../../support/until.ts'
import {
  client,
  database,
  hex,
  letters,
  newWorkspace,
  QUEUES,
  restartPools,
  services,
  stopPools,
} from './completeness-fixture.ts'

const RETENTION_DAYS = 30

describe('GET /v3/traces/{traceId}/completeness', () => {
  it('is complete when everything that was accepted is stored, and stays so with a span that comes late', async () => {
    const { store, untilState, ask, traceId } = await newWorkspace()
    await store([{ spanId: 1 }, { spanId: 2, parent: 1 }])
    const first = await untilState('complete')
    expect(first).toMatchObject({ traceId, reasons: [], spanCount: 2, rootCount: 1, missingParents: [] })
    await store([{ spanId: 3, parent: 2 }])
    const second = await untilState('complete')
    expect(second.spanCount).toBe(3)
    expect(Date.parse(second.settledBefore ?? '')).toBeGreaterThan(Date.parse(first.settledBefore ?? ''))
    const { body } = await ask(`/v3/traces/${traceId}`)
    expect(body).toMatchObject({ completeness: { state: 'complete', reasons: [] }, missingParents: [] })
  })

  it('is not complete while an accepted request waits to be stored, which may have the missing parent', async () => {
    const { store, send, completeness, untilState } = await newWorkspace()
    await store([{ spanId: 2, parent: 1 }])
    await stopPools()
    expect(await send([{ spanId: 1 }])).toBe(200)
    const waiting = await completeness()
    expect(waiting).toMatchObject({ state: 'incomplete', reasons: ['in_flight'] })
    expect(waiting.missingParents).toEqual([{ spanId: hex(1), firstChild: 0, childCount: 1, cause: 'in_flight' }])
    restartPools()
    expect((await untilState('complete')).spanCount).toBe(2)
  })

  it('is not complete while a request waits that was accepted before its last span arrived, although no parent is missing', async () => {
    const waiting = await newWorkspace()
    await stopPools()
    expect(await waiting.send([{ spanId: 1 }])).toBe(200)
    const { workspaceId, traceId, completeness, untilState } = await newWorkspace()
    await insertSpans(client, [{ workspaceId, traceId, spanId: hex(1), receivedAt: Date.now() }])
    expect(await completeness()).toMatchObject({ state: 'no_gaps', reasons: ['in_flight'] })
    restartPools()
    await untilState('complete')
  })

  it('names a dead letter as the cause until it is replayed, and has no gaps without a missing parent', async () => {
    const { store, send, completeness, untilState, workspaceId, surfaceId } = await newWorkspace()
    await client.command({ query: "ALTER TABLE spans ADD CONSTRAINT refused CHECK name != 'poison'" })
    await store([{ spanId: 2, parent: 1 }])
    await store([{ spanId: 1, name: 'poison' }])
    const assessed = await completeness()
    expect(assessed).toMatchObject({ state: 'incomplete', reasons: ['dead_lettered'] })
    expect(assessed.missingParents).toMatchObject([{ spanId: hex(1), cause: 'dead_lettered' }])
    await insertSpans(client, [
      { workspaceId, surfaceId, traceId: 'e'.repeat(32), spanId: hex(5), receivedAt: Date.now() },
    ])
    await client.command({ query: 'ALTER TABLE spans DROP CONSTRAINT IF EXISTS refused' })
    expect(await send([{ spanId: 1 }])).toBe(200)
    await letters.untilDone(...QUEUES)
    expect(await completeness()).toMatchObject({ state: 'no_gaps', reasons: ['dead_lettered'], missingParents: [] })
    expect(await letters.replayAll(workspaceId)).toBe(1)
    await letters.untilDone(...QUEUES)
    await untilState('complete')
  })

  it('names a refused request as the cause, as soon as the edge has counted it', async () => {
    const { store, send, completeness, surfaceId } = await newWorkspace()
    await store([{ spanId: 2, parent: 1 }])
    expect(await send([{ spanId: 1 }], 'text/plain')).toBe(415)
    await until('the refusal is counted', async () => (await completeness()).reasons.includes('refused'))
    expect((await completeness()).missingParents).toMatchObject([{ spanId: hex(1), cause: 'refused' }])
    await store([{ spanId: 1 }])
    // Counted once, although Redis and its copy both have it.
    const losses = [{ cause: 'refused', surfaceId, isNear: true, count: 1 }]
    expect(await completeness()).toMatchObject({ state: 'no_gaps', reasons: ['refused'], losses })
  })

  it('knows the refusals of hours that Redis does not count any more', async () => {
    const { workspaceId, surfaceId, traceId, completeness } = await newWorkspace()
    const receivedAt = Date.now() - 2 * DAY_MS
    const startTimeUnixNano = BigInt(receivedAt) * 1_000_000n
    const stored = {
      workspaceId,
      surfaceId,
      traceId,
      receivedAt,
      startTimeUnixNano,
      endTimeUnixNano: startTimeUnixNano,
    }
    await insertSpans(client, [{ ...stored, spanId: hex(1) }])
    expect(await completeness()).toMatchObject({ state: 'complete' })
    const counts = {
      table: 'request_counts',
      format: 'JSONEachRow' as const,
      values: [
        {
          ...{
            workspace_id: workspaceId,
            surface_id: surfaceId,
            signal: 'traces',
            outcome: 'refused-413',
            requests: 2,
          },
          received_hour: Math.floor(receivedAt / HOUR_MS) * HOUR_S,
        },
      ],
    }
    await onFirstShard(client, shard => shard.insert(counts))
    expect(await completeness()).toMatchObject({
      ...{ state: 'no_gaps', reasons: ['refused'] },
      losses: [{ cause: 'refused', surfaceId, count: 2 }],
    })
  })

  it('asks the child where a parent is that never came', async () => {
    const { store, completeness } = await newWorkspace()
    await store([
      { spanId: 1 },
      { spanId: 2, parent: 7, flags: 0x301 },
      { spanId: 3, parent: 8, flags: 0x101 },
      { spanId: 4, parent: 9, flags: 1 },
    ])
    const { state, missingParents } = await completeness()
    expect(state).toBe('incomplete')
    expect(missingParents.map(({ cause }) => cause)).toEqual([
      'not_received_from_other_service',
      'not_received_from_this_service',
      'unknown',
    ])
  })

  it('is not complete where the retention ends: what belongs to it may have expired', async () => {
    const { workspaceId, traceId, completeness } = await newWorkspace()
    const firstKept = (Math.floor(Date.now() / DAY_MS) - RETENTION_DAYS + 1) * DAY_MS
    const receivedAt = firstKept + 600_000
    const startTimeUnixNano = BigInt(receivedAt) * 1_000_000n
    const stored = { workspaceId, traceId, receivedAt, startTimeUnixNano, endTimeUnixNano: startTimeUnixNano }
    await insertSpans(client, [{ ...stored, spanId: hex(1) }])
    expect(await completeness()).toMatchObject({ state: 'no_gaps', reasons: ['expired'] })
    await insertSpans(client, [{ ...stored, spanId: hex(2), parentSpanId: hex(9) }])
    expect((await completeness()).missingParents).toMatchObject([{ spanId: hex(9), cause: 'expired' }])
  })

  it('is not complete without a root, and not while the queues are unavailable', async () => {
    const { store, completeness, untilState, traceId, bearer } = await newWorkspace()
    await store([
      { spanId: 1, parent: 2 },
      { spanId: 2, parent: 1 },
    ])
    expect(await completeness()).toMatchObject({ state: 'incomplete', rootCount: 0, reasons: ['unknown'] })
    await store([{ spanId: 3 }])
    await untilState('complete')
    const settings = { REDIS_URL: 'redis://127.0.0.1:1', DIRECTORY_REDIS_URL: services.redisUrl }
    const alone = await startApi(services, database.name, settings)
    try {
      const { status, body } = await call(alone.baseUrl, `GET /v3/traces/${traceId}`, { bearer })
      expect({ status, body }).toMatchObject({
        status: 200,
        body: { completeness: { state: 'no_gaps', reasons: ['unknown'] } },
      })
      expect(body).not.toHaveProperty('completeness.settledBefore')
    } finally {
      await alone.stop()
    }
  })

  it('is not found for a trace that is not retained, or a malformed id', async () => {
    const { ask } = await newWorkspace()
    for (const id of ['f'.repeat(32), 'x', '%zz']) {
      expect(await ask(`/v3/traces/${id}/completeness`)).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    }
  })
})
