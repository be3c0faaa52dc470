import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { onFirstShard } from '../../../../clickhouse/client.ts'
import { type TraceCompleteness, traceCompletenessSchema } from '../../../../schemas/http/traces/completeness.ts'
import type { QueueName } from '../../../../schemas/queues/names.ts'
import { createDirectory, newId } from '../../../../shared/directory/directory.ts'
import { connectDatabase } from '../../../support/cluster/connect.ts'
import { connectLetters } from '../../../support/dead-letters.ts'
import { call, insertSpans, putWorkspace, signToken, startApi } from '../../../support/services/api.ts'
import { issueKey, startEdge } from '../../../support/services/edge.ts'
import { startPools, type TestPools } from '../../../support/services/pools.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase } from '../../../support/services/test-database.ts'
import { until } from '../../../support/until.ts'

const QUEUES: readonly QueueName[] = ['spans', 'dead-letters', 'dead-letter-index']
const DAY_MS = 86_400_000
const RETENTION_DAYS = 30

// The queues are in a database of Redis of their own: requests that other tests left there would never be settled.
const shared = sharedServices()
const services = { ...shared, redisUrl: `${shared.redisUrl}/7` }
const database = await createTestDatabase(services.clickhouseUrl, `completeness_${process.pid}`)
const client = connectDatabase(services.clickhouseUrl, database.name)
const letters = connectLetters(services, services.redisUrl, client)
await letters.redis.flushdb()
const directoryRedis = new Redis(services.redisUrl)
const directory = createDirectory(directoryRedis)
const api = await startApi(services, database.name)
const edge = await startEdge(services.redisUrl)
let pools: TestPools | undefined = start()

afterEach(async () => {
  await client.command({ query: 'ALTER TABLE spans DROP CONSTRAINT IF EXISTS refused' })
  pools ??= start()
})

afterAll(async () => {
  await pools?.stop()
  await Promise.all([api.stop(), edge.stop()])
  await letters.redis.flushdb()
  await letters.close()
  await directoryRedis.quit()
  await client.close()
  await database.drop()
})

function start(): TestPools {
  return startPools(QUEUES, services, database.name)
}

async function stopPools(): Promise<void> {
  await pools?.stop()
  pools = undefined
}

interface SentSpan {
  readonly spanId: number
  readonly parent?: number
  readonly name?: string
  readonly flags?: number
}

/** A workspace of its own, because losses are those of a workspace. */
async function newWorkspace() {
  const slug = `whole-${randomBytes(5).toString('hex')}`
  const workspace = { id: newId('ws'), slug, userId: `user_${slug}` }
  await putWorkspace(services.redisUrl, workspace)
  const surfaceId = newId('srf')
  const key = await issueKey(directory, { workspaceId: workspace.id, surfaceId })
  const bearer = await signToken({ org: slug, sub: workspace.userId })
  const traceId = randomBytes(16).toString('hex')
  const ask = (path: string) => call(api.baseUrl, `GET ${path}`, { bearer })
  async function send(spans: readonly SentSpan[], contentType = 'application/json'): Promise<number> {
    const started = BigInt(Date.now()) * 1_000_000n
    const sent = spans.map(({ spanId, parent, name = 'n', flags = 0 }) => ({
      ...{
        traceId,
        spanId: hex(spanId),
        name,
        flags,
        startTimeUnixNano: String(started),
        endTimeUnixNano: String(started),
      },
      ...(parent === undefined ? {} : { parentSpanId: hex(parent) }),
    }))
    const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': contentType, 'x-service-public-key': key },
      body: JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: sent }] }] }),
    })
    return response.status
  }
  async function completeness(): Promise<TraceCompleteness> {
    const { status, body } = await ask(`/v3/traces/${traceId}/completeness`)
    expect({ status, body }).toMatchObject({ status: 200 })
    return traceCompletenessSchema.parse(body)
  }
  return {
    ...{ workspaceId: workspace.id, surfaceId, traceId, bearer, ask, send, completeness },
    /** Sends spans and waits until they are settled. */
    async store(spans: readonly SentSpan[]): Promise<void> {
      expect(await send(spans)).toBe(200)
      await letters.untilDone(...QUEUES)
    },
    /** Waits until the trace is assessed so, which follows the clock of Redis. */
    untilState: (state: TraceCompleteness['state']) =>
      until(`the trace is ${state}`, async () => {
        const assessed = await completeness()
        return assessed.state === state ? assessed : undefined
      }),
  }
}

const hex = (spanId: number) => spanId.toString(16).padStart(16, '0')

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
    pools = start()
    expect((await untilState('complete')).spanCount).toBe(2)
  })

  it('is not complete while a request waits that was accepted before its last span arrived, although no parent is missing', async () => {
    const waiting = await newWorkspace()
    await stopPools()
    expect(await waiting.send([{ spanId: 1 }])).toBe(200)
    const { workspaceId, traceId, completeness, untilState } = await newWorkspace()
    await insertSpans(client, [{ workspaceId, traceId, spanId: hex(1), receivedAt: Date.now() }])
    expect(await completeness()).toMatchObject({ state: 'uncertain', reasons: ['in_flight'] })
    pools = start()
    await untilState('complete')
  })

  it('names a dead letter as the cause until it is replayed, and is uncertain without a missing parent', async () => {
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
    expect(await completeness()).toMatchObject({ state: 'uncertain', reasons: ['dead_lettered'], missingParents: [] })
    expect(await letters.replayAll(workspaceId)).toBe(1)
    await letters.untilDone(...QUEUES)
    await untilState('complete')
  })

  it('names a refused request as the cause, as soon as the edge has counted it', async () => {
    const { store, send, completeness } = await newWorkspace()
    await store([{ spanId: 2, parent: 1 }])
    expect(await send([{ spanId: 1 }], 'text/plain')).toBe(415)
    await until('the refusal is counted', async () => (await completeness()).reasons.includes('refused'))
    expect((await completeness()).missingParents).toMatchObject([{ spanId: hex(1), cause: 'refused' }])
    await store([{ spanId: 1 }])
    expect(await completeness()).toMatchObject({ state: 'uncertain', reasons: ['refused'] })
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
          received_hour: Math.floor(receivedAt / 3_600_000) * 3_600,
        },
      ],
    }
    await onFirstShard(client, shard => shard.insert(counts))
    expect(await completeness()).toMatchObject({ state: 'uncertain', reasons: ['refused'] })
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
    expect(await completeness()).toMatchObject({ state: 'uncertain', reasons: ['expired'] })
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
    const settings = { REDIS_URL: 'redis://127.0.0.1:1', CONTROL_REDIS_URL: services.redisUrl }
    const alone = await startApi(services, database.name, settings)
    try {
      const { status, body } = await call(alone.baseUrl, `GET /v3/traces/${traceId}`, { bearer })
      expect({ status, body }).toMatchObject({
        status: 200,
        body: { completeness: { state: 'uncertain', reasons: ['unknown'] } },
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
