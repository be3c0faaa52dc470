import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runAudit } from '../../../cli/audit/run-audit.ts'
import { type Receipt, receiptAnswerSchema } from '../../../schemas/http/receipts.ts'
import type { Completeness } from '../../../schemas/http/traces/schemas.ts'
import { usagePageSchema } from '../../../schemas/http/usage.ts'
import { HOUR_S } from '../../../schemas/units.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/5`
const QUEUES = ['traces', 'logs', 'metrics', 'exceptions', 'receipts', 'dead-letters', 'dead-letter-index'] as const
const NANO = `${Date.now()}000000`
const RULES = [
  { name: 'errors', attributes: [{ key: 'error.type' }], keep: 1 },
  { name: 'health', names: ['GET /health*'] },
  { name: 'debug', signals: ['logs'], services: ['noisy'], attributes: [{ key: 'level', value: 'debug' }] },
  { name: 'sampled', services: ['sampled'], keep: 0.1 },
]

/** A workspace with one surface. */
interface Tenant {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly slug: string
  readonly publicKey: string
}

describe('drop rules', () => {
  let redis: Redis
  let database: TestDatabase
  let edge: TestEdge
  let api: TestApi
  let pools: TestPools
  let own: Tenant
  let other: Tenant
  const objectStore = s3Settings(services.s3)

  async function putTenant(name: string): Promise<Tenant> {
    const ids = { workspaceId: newId('ws'), surfaceId: newId('srf') }
    const slug = `${name}-${ids.workspaceId.slice(-8)}`
    await putWorkspace(redisUrl, { id: ids.workspaceId, slug })
    return { ...ids, slug, publicKey: await issueKey(createDirectory(redis), ids) }
  }

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    database = await createTestDatabase(services.clickhouseUrl, `dropping_${process.pid}`)
    edge = await startEdge(redisUrl, objectStore)
    api = await startApi({ ...services, redisUrl }, database.name, objectStore)
    own = await putTenant('drops')
    other = await putTenant('keeps')
    pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
  })
  afterAll(async () => {
    await pools?.stop()
    await api?.stop()
    await edge?.stop()
    await database?.drop()
    redis?.disconnect()
  })

  const ask = async (operation: string, body?: unknown, { slug }: Tenant = own) =>
    call(api.baseUrl, operation, { bearer: await signToken({ org: slug }), body })

  let sent = 0
  const idOf = (bytes: number) => `7${(++sent).toString(16).padStart(2 * bytes - 1, '0')}`
  const span = (traceId: string, more: object = {}) => ({
    ...{ traceId, spanId: idOf(8), name: 'GET /cart', startTimeUnixNano: NANO, endTimeUnixNano: NANO },
    ...more,
  })
  const pairs = (attributes: Record<string, string>) =>
    Object.entries(attributes).map(([key, stringValue]) => ({ key, value: { stringValue } }))
  const serviceOf = (name: string) => ({ attributes: pairs({ 'service.name': name }) })
  const spansOf = (spans: readonly object[], service = 'shop') => ({
    resourceSpans: [{ resource: serviceOf(service), scopeSpans: [{ spans }] }],
  })
  const logsOf = (logRecords: readonly object[], service = 'shop') => ({
    resourceLogs: [{ resource: serviceOf(service), scopeLogs: [{ logRecords }] }],
  })

  /** Sends an export and returns the receipt, once it is final. */
  async function send(signal: string, body: unknown, tenant = own): Promise<Receipt> {
    const headers = { 'x-service-public-key': tenant.publicKey }
    const answer = await call(edge.baseUrl, `POST /drain/v1/${signal}`, { body, headers })
    expect(answer.status).toBe(200)
    const path = `GET /v3/receipts/${answer.headers.get('x-receipt-id')}`
    return until('the receipt is final', async () => {
      const { receipt } = receiptAnswerSchema.parse((await ask(path, undefined, tenant)).body)
      return receipt.status === 'queued' ? undefined : receipt
    })
  }

  async function verdictOf(traceId: string): Promise<Completeness> {
    const settled = await until('the verdict is not about what is in flight', async () => {
      const { body } = await ask(`GET /v3/traces/${traceId}/completeness`)
      const completeness = body as Completeness
      return completeness.reasons.includes('in_flight') ? undefined : completeness
    })
    return settled
  }

  it('are none by default, and are replaced as a whole by who has read them', async () => {
    expect((await ask('GET /v3/dropping')).body).toEqual({ revision: 0, rules: [] })
    const replaced = await ask('PUT /v3/dropping', { revision: 0, rules: RULES })
    expect(replaced).toMatchObject({ status: 200, body: { rules: RULES } })
    expect((await ask('PUT /v3/dropping', { revision: 0, rules: [] })).status).toBe(409)
    expect((await ask('GET /v3/changes')).body).toMatchObject({ changes: [{ action: 'dropping.changed' }] })
    await until(
      'the workers know the rules',
      async () => (await send('traces', spansOf([span(idOf(16), { name: 'GET /health' })]))).dropped !== undefined,
      { deadlineMs: 30_000 },
    )
  })

  it('leave the records of other workspaces', async () => {
    const traceId = idOf(16)
    const receipt = await send('traces', spansOf([span(traceId, { name: 'GET /health' })]), other)
    expect(receipt).toMatchObject({ status: 'stored' })
    expect(receipt.dropped).toBeUndefined()
    const [row] = await database.rows<{ n: number }>(
      `SELECT toUInt32(count()) AS n FROM spans WHERE workspace_id = '${other.workspaceId}'`,
    )
    expect(row?.n).toBe(1)
  })

  it('keep a share of the traces, with all their spans and log records', async () => {
    const traces = Array.from({ length: 2_000 }, () => idOf(16))
    for (let i = 0; i < traces.length; i += 500) {
      const part = traces.slice(i, i + 500)
      await send(
        'traces',
        spansOf(
          part.flatMap(traceId => [span(traceId), span(traceId, { name: 'other' })]),
          'sampled',
        ),
      )
      await send(
        'logs',
        logsOf(
          part.map(traceId => ({ timeUnixNano: NANO, traceId })),
          'sampled',
        ),
      )
    }
    const of = `workspace_id = '${own.workspaceId}' AND service_name = 'sampled'`
    const kept = async (table: string) =>
      database.rows<{ id: string; n: number }>(
        `SELECT hex(trace_id) AS id, toUInt32(count()) AS n FROM ${table} WHERE ${of} GROUP BY id ORDER BY id`,
      )
    const [spans, logs] = [await kept('spans'), await kept('logs')]
    expect(Math.abs(spans.length - 200)).toBeLessThan(60)
    expect(new Set(spans.map(({ n }) => n))).toEqual(new Set([2]))
    expect(logs).toEqual(spans.map(({ id }) => ({ id, n: 1 })))
    // A kept trace is whole, although others of its time were dropped.
    expect(await verdictOf(spans[0]?.id.toLowerCase() ?? '')).toMatchObject({ state: 'complete', losses: [] })
  })

  it('are known to the verdict on a trace', async () => {
    const [traceId, whole] = [idOf(16), idOf(16)]
    const parent = span(traceId, { name: 'GET /health' })
    const root = span(whole)
    await send('traces', spansOf([parent, span(traceId, { parentSpanId: parent.spanId }), root]))
    const loss = { cause: 'dropped', rule: 'health', surfaceId: own.surfaceId, isNear: true, count: 1 }
    expect(await verdictOf(traceId)).toMatchObject({ state: 'incomplete', reasons: ['dropped'], losses: [loss] })
    expect(await verdictOf(whole)).toMatchObject({ state: 'complete', reasons: [], losses: [] })
    // No span names a leaf.
    await send('traces', spansOf([span(whole, { name: 'GET /health', parentSpanId: root.spanId })]))
    expect(await verdictOf(whole)).toMatchObject({ state: 'no_gaps', reasons: ['dropped'], losses: [loss] })
  })

  it('may be of any trace of their time where the log has not all of their traces', async () => {
    const traceId = idOf(16)
    await send('traces', spansOf([span(traceId)]))
    expect(await verdictOf(traceId)).toMatchObject({ state: 'complete' })
    const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
    await clickhouse.command({
      query: `INSERT INTO ingest_log (workspace_id, surface_id, received_at, signal, dropped, dropped_spans)
        SELECT '${own.workspaceId}', '${own.surfaceId}', now64(3), 'traces', map('many', 20001), map('many', range(20000))`,
    })
    await clickhouse.close()
    const loss = { cause: 'dropped', rule: 'many', count: 1 }
    expect(await verdictOf(traceId)).toMatchObject({ state: 'no_gaps', reasons: ['dropped'], losses: [loss] })
  })

  // After those on verdicts: its invalid span is a dead letter, which they would name.
  it('leave the request stored, and are named by its receipt', async () => {
    const traceId = idOf(16)
    const exception = { name: 'exception', timeUnixNano: NANO, attributes: pairs({ 'exception.type': 'Dropped' }) }
    const health = { name: 'GET /health/live', events: [exception] }
    const spans = [span(traceId, health), span(traceId), span('00'.repeat(16)), span(traceId, health)]
    const failed = span(traceId, { ...health, attributes: pairs({ 'error.type': '500' }) })
    const receipt = await send('traces', spansOf([...spans, failed]))
    expect(receipt).toMatchObject({
      status: 'stored',
      dropped: [{ rule: 'health', count: 2 }],
      rejected: [{ reason: 'invalid_trace_id', count: 1 }],
    })
    const debug = await send('logs', logsOf([{ timeUnixNano: NANO, attributes: pairs({ level: 'debug' }) }], 'noisy'))
    expect(debug).toMatchObject({ status: 'stored', dropped: [{ rule: 'debug', count: 1 }] })
    expect(debug.rejected).toBeUndefined()
    const point = { timeUnixNano: NANO, asInt: '1' }
    const metrics = ['GET /healthy', 'kept'].map(name => ({ name, gauge: { dataPoints: [point, point] } }))
    const points = await send('metrics', { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
    expect(points).toMatchObject({ status: 'stored', dropped: [{ rule: 'health', count: 2 }] })
    const of = `workspace_id = '${own.workspaceId}'`
    const [row] = await database.rows<Record<string, number>>(
      `SELECT toUInt32((SELECT count() FROM spans WHERE ${of} AND trace_id = unhex('${traceId}'))) AS spans,
        toUInt32((SELECT count() FROM logs WHERE ${of} AND service_name = 'noisy')) AS logs,
        toUInt32((SELECT count() FROM metric_points WHERE ${of})) AS points,
        toUInt32((SELECT count() FROM exceptions WHERE ${of})) AS exceptions`,
    )
    // The exception is that of the failed span.
    expect(row).toEqual({ spans: 2, logs: 0, points: 2, exceptions: 1 })
  })

  it('are counted by rule in usage and audit, where everything adds up', async () => {
    const from = Math.floor(Date.now() / 1_000 / HOUR_S - 1) * HOUR_S
    const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
    try {
      const deps = { queues: onOneServer(redis), losses: [], clickhouse, objects, now: Date.now }
      const report = await runAudit(deps, { from, to: from + 3 * HOUR_S, workspaceId: own.workspaceId })
      expect(report.differences).toEqual([])
      const sum = (kind: string, name: string) =>
        report.dropped
          .filter(line => line.kind === kind && line.rule === name && line.workspaceId === own.workspaceId)
          .reduce((total, { records }) => total + records, 0)
      expect([sum('logs', 'debug'), sum('metrics', 'health')]).toEqual([1, 2])
      const [row] = await database.rows<{ spans: number; logs: number }>(
        `SELECT toUInt32(countIf(signal = 'traces')) AS spans, toUInt32(countIf(signal = 'logs')) AS logs
         FROM (SELECT 'traces' AS signal FROM spans WHERE service_name = 'sampled'
               UNION ALL SELECT 'logs' FROM logs WHERE service_name = 'sampled')`,
      )
      expect(sum('traces', 'sampled')).toBe(4_000 - (row?.spans ?? 0))
      expect(sum('logs', 'sampled')).toBe(2_000 - (row?.logs ?? 0))
      const { usage } = usagePageSchema.parse((await ask('GET /v3/usage')).body)
      for (const { kind, dropped } of usage) {
        for (const { rule, count } of dropped)
          expect({ kind, rule, count }).toEqual({ kind, rule, count: sum(kind, rule) })
      }
      expect(usage.flatMap(({ dropped }) => dropped).length).toBeGreaterThanOrEqual(5)
    } finally {
      objects.close()
      await clickhouse.close()
    }
  })

  it('are refused if they have no condition, or one that cannot match', async () => {
    for (const [message, rule] of [
      ['rules.0.signals is required, or services, names or attributes', {}],
      ['rules.0.names', { names: [] }],
      ['rules.0.names.0 must have * only at its end', { names: ['a*b'] }],
      ['rules.0.attributes.0.key', { attributes: [{ value: 'x' }] }],
      ['rules.0.keep', { names: ['a'], keep: 1.1 }],
      ['rules.0 must not have the field "service"', { service: ['a'], names: ['a'] }],
    ] as const) {
      const refused = await ask('PUT /v3/dropping', { revision: 0, rules: [{ name: 'r', ...rule }] })
      expect({ rule, ...refused }).toMatchObject({ status: 400, body: { message: expect.stringContaining(message) } })
    }
    const conditions = Array.from({ length: 50 }, (_, i) => `service ${i}`)
    const rules = Array.from({ length: 11 }, (_, i) => ({ name: `r-${i}`, services: conditions }))
    expect((await ask('PUT /v3/dropping', { revision: 0, rules })).status).toBe(400)
  })
})
