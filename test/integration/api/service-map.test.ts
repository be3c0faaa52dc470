import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serviceMapSchema } from '../../../schemas/http/service-map.ts'
import { MINUTE_MS } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { upkeepKeys } from '../../../shared/directory/record.ts'
import { countEdges } from '../../../workers/upkeep/edges/count-edges.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { CLIENT, CONSUMER, hex, PRODUCER, SERVER, type StagedSpan, storeSpans } from '../../support/staged-calls.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/11`
const redis = new Redis(redisUrl)
const database = await createTestDatabase(services.clickhouseUrl, `service_map_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
/** A minute of which all spans have arrived. */
const MINUTE = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 10 * MINUTE_MS
const SECOND = 1e9

let api: TestApi
let token: string

/** Two calls of the cart, one of which fails, with its database; a message; a bank that sends no spans; an unknown caller. */
const SPANS: readonly StagedSpan[] = [
  { trace: 1, id: 1, service: 'web', kind: CLIENT, name: 'GET', durationNano: 3 * SECOND, environment: 'browser' },
  { trace: 1, id: 2, parent: 1, service: 'cart', kind: SERVER, name: 'GET /cart', durationNano: 2 * SECOND },
  { trace: 2, id: 1, service: 'web', kind: CLIENT, name: 'GET', durationNano: SECOND },
  { trace: 2, id: 2, parent: 1, service: 'cart', kind: SERVER, name: 'GET /cart', durationNano: SECOND, failed: true },
  {
    ...{ trace: 2, id: 3, parent: 2, service: 'cart', kind: CLIENT, name: 'SELECT', durationNano: SECOND / 2 },
    attributes: { 'db.system.name': 'postgresql', 'db.namespace': 'carts' },
  },
  { trace: 3, id: 1, service: 'cart', kind: PRODUCER, name: 'send', attributes: { 'messaging.system': 'kafka' } },
  {
    ...{ trace: 3, id: 2, parent: 1, service: 'mailer', kind: CONSUMER, name: 'process' },
    attributes: { 'messaging.system': 'kafka', 'messaging.destination.name': 'orders' },
  },
  { trace: 4, id: 1, service: 'cart', kind: CLIENT, name: 'POST', attributes: { 'server.address': 'bank.example' } },
  { trace: 5, id: 2, parent: 1, service: 'cart', kind: SERVER, name: 'GET /health' },
]

beforeAll(async () => {
  await redis.flushdb()
  await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
  api = await startApi({ redisUrl, clickhouseUrl: services.clickhouseUrl }, database.name)
  token = await signToken({ org: 'acme' })
  await storeSpans(clickhouse, { workspaceId: 'ws_1', minuteMs: MINUTE }, SPANS)
  await storeSpans(clickhouse, { workspaceId: newId('ws'), minuteMs: MINUTE }, SPANS)
  await redis.set(upkeepKeys.edgesBefore, MINUTE)
  const settledBeforeMs = async () => MINUTE + 2 * MINUTE_MS
  await countEdges({ redis, clickhouse, settledBeforeMs, assertElected: async () => {} })
})
afterAll(async () => {
  await api?.stop()
  await clickhouse.close()
  await database.drop()
  redis.disconnect()
})

const range = `from=${new Date(MINUTE).toISOString()}&to=${new Date(MINUTE + MINUTE_MS).toISOString()}`
async function read(path: string): Promise<unknown> {
  const { status, body } = await call(api.baseUrl, `GET ${path}`, { bearer: token })
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}
const readMap = async (query = '') => serviceMapSchema.parse(await read(`/v3/service-map?${range}${query}`))

describe('the map of services', () => {
  it('shows the calls between services, and to what has sent no spans', async () => {
    const { services: nodes, edges, isCut, from, to } = await readMap()
    expect([from, to, isCut]).toEqual([
      new Date(MINUTE).toISOString(),
      new Date(MINUTE + MINUTE_MS).toISOString(),
      false,
    ])
    expect(nodes.map(({ name, counts, spans, errors }) => ({ name, counts, spans, errors }))).toEqual([
      { name: 'cart', counts: 'entries', spans: 3, errors: 1 },
      { name: 'web', counts: 'all', spans: 2, errors: 0 },
      { name: 'mailer', counts: 'entries', spans: 1, errors: 0 },
    ])
    const shown = edges.map(({ caller, callee, kind, peer, calls, errors }) => ({
      caller,
      callee,
      kind,
      peer,
      calls,
      errors,
    }))
    const one = { calls: 1, errors: 0 }
    expect(shown[0]).toEqual({ caller: 'web', callee: 'cart', kind: 'request', peer: null, calls: 2, errors: 1 })
    expect(shown.slice(1)).toEqual([
      { caller: null, callee: 'cart', kind: 'request', peer: null, ...one },
      { caller: 'cart', callee: null, kind: 'database', peer: { system: 'postgresql', name: 'carts' }, ...one },
      { caller: 'cart', callee: null, kind: 'request', peer: { system: '', name: 'bank.example' }, ...one },
      { caller: 'cart', callee: 'mailer', kind: 'message', peer: { system: 'kafka', name: 'orders' }, ...one },
    ])
    const { durationMs, callerDurationMs, slowest } = edges[0] ?? {}
    expect([durationMs?.average, callerDurationMs?.average]).toEqual([1_500, 2_000])
    expect(Math.abs((callerDurationMs?.p99 ?? 0) / 3_000 - 1)).toBeLessThan(0.012)
    expect(slowest).toEqual({ traceId: hex(1, 32), durationMs: 3_000 })
    expect(edges[2]).toMatchObject({ durationMs: null, callerDurationMs: { average: 500 } })
  })

  it('can be that of one service, or of one environment', async () => {
    const ofMailer = await readMap('&service=mailer')
    expect(ofMailer.services.map(({ name }) => name)).toEqual(['cart', 'mailer'])
    expect(ofMailer.edges).toHaveLength(1)
    expect(await readMap('&environment=staging')).toMatchObject({ services: [], edges: [] })
  })

  it('is what Jaeger calls dependencies', async () => {
    const { data } = (await read(`/jaeger/api/dependencies?endTs=${MINUTE + MINUTE_MS}&lookback=3600000`)) as {
      data: object[]
    }
    expect(data).toEqual([
      { parent: 'web', child: 'cart', callCount: 2 },
      { parent: 'cart', child: 'mailer', callCount: 1 },
    ])
    expect(await read(`/jaeger/api/dependencies?endTs=${MINUTE - MINUTE_MS}`)).toMatchObject({ data: [] })
  })
})

type Metric = Readonly<Record<string, string>>

/** Evaluates PromQL at the end of the minute. */
async function query(promql: string): Promise<Record<string, number>> {
  const time = (MINUTE + MINUTE_MS) / 1_000
  const body = await read(`/prometheus/api/v1/query?query=${encodeURIComponent(promql)}&time=${time}`)
  const { result } = (body as { data: { result: { metric: Metric; value: [number, string] }[] } }).data
  return Object.fromEntries(
    result.map(({ metric, value }) => [Object.values(metric).join(' -> ') || 'all', Number(value[1])]),
  )
}

describe('metrics by the names that Grafana expects', () => {
  it('draw its service graph', async () => {
    const by = (metric: string) => query(`sum by (client, server) (increase(${metric}[1m]))`)
    expect(await by('traces_service_graph_request_total')).toEqual({
      'web -> cart': 2,
      'unknown -> cart': 1,
      'cart -> carts': 1,
      'cart -> bank.example': 1,
      'cart -> mailer': 1,
    })
    expect(await by('traces_service_graph_request_failed_total')).toMatchObject({
      'web -> cart': 1,
      'cart -> mailer': 0,
    })
    const seconds = await by('traces_service_graph_request_server_seconds_sum')
    expect(seconds).toMatchObject({ 'web -> cart': 3, 'cart -> carts': 0.5 })
    expect(await by('traces_service_graph_request_client_seconds_count')).toMatchObject({ 'web -> cart': 2 })
    const types = await query(
      'sum by (server, connection_type) (increase(traces_service_graph_request_total{client="cart"}[1m]))',
    )
    expect(types).toEqual({
      'carts -> database': 1,
      'bank.example -> virtual_node': 1,
      'mailer -> messaging_system': 1,
    })
  })

  it('list the operations of services with rate, errors and duration', async () => {
    const calls = 'traces_spanmetrics_calls_total{span_kind="SPAN_KIND_SERVER", service="cart"}'
    expect(await query(`topk(5, sum(rate(${calls}[1m])) by (span_name))`)).toEqual({
      'GET /cart': 2 / 60,
      'GET /health': 1 / 60,
    })
    const failed = 'traces_spanmetrics_calls_total{status_code="STATUS_CODE_ERROR", span_name=~"GET.*"}'
    expect(await query(`sum(increase(${failed}[1m])) by (span_name)`)).toEqual({ 'GET /cart': 1 })
    const buckets = 'traces_spanmetrics_latency_bucket{service="cart", span_name="GET /cart"}'
    const { all = 0 } = await query(`histogram_quantile(.9, sum(rate(${buckets}[1m])) by (le))`)
    // Between the bounds of the bucket in which it is.
    expect(all).toBeGreaterThan(1.073)
    expect(all).toBeLessThan(2.148)
    expect(await query(`sum(increase(${buckets.replace('}', ', le="+Inf"}')}[1m]))`)).toEqual({ all: 2 })
    expect(
      await query('sum(increase(traces_spanmetrics_latency_sum{service="cart", span_name="SELECT"}[1m]))'),
    ).toEqual({ all: 0.5 })
  })

  it('are in the lists of names, labels, values and series, with type and unit', async () => {
    const times = `start=${MINUTE / 1_000}&end=${(MINUTE + MINUTE_MS) / 1_000}`
    const list = async (path: string) =>
      (await read(`/prometheus/api/v1/${path}${path.includes('?') ? '&' : '?'}${times}`)) as { data: never }
    const { data: names } = await list('label/__name__/values')
    expect(names).toContain('traces_spanmetrics_calls_total')
    expect(names).toContain('traces_service_graph_request_server_seconds_bucket')
    const match = (selector: string) => `match[]=${encodeURIComponent(selector)}`
    const { data: labels } = await list(`labels?${match('traces_spanmetrics_latency_bucket')}`)
    expect(labels).toEqual(['__name__', 'le', 'service', 'span_kind', 'span_name', 'status_code'])
    const { data: values } = await list(
      `label/span_name/values?${match('{__name__=~"traces_spanmetrics_.*", service="mailer"}')}`,
    )
    expect(values).toEqual(['process'])
    const { data: series } = await list(`series?${match('traces_service_graph_request_total{server="mailer"}')}`)
    expect(series).toEqual([
      {
        __name__: 'traces_service_graph_request_total',
        ...{ client: 'cart', server: 'mailer', connection_type: 'messaging_system' },
      },
    ])
    const { data: metadata } = await list('metadata?metric=traces_spanmetrics_latency')
    expect(metadata).toEqual({
      traces_spanmetrics_latency: [{ type: 'histogram', help: 'Durations of spans in seconds.', unit: 's' }],
    })
  })

  it('have the longest span of each minute as exemplar', async () => {
    const promql =
      'histogram_quantile(0.95, sum by (le) (rate(traces_spanmetrics_latency_bucket{span_name="GET /cart", status_code="STATUS_CODE_UNSET"}[5m])))'
    const times = `start=${MINUTE / 1_000}&end=${(MINUTE + MINUTE_MS) / 1_000}`
    const { data } = (await read(
      `/prometheus/api/v1/query_exemplars?query=${encodeURIComponent(promql)}&${times}`,
    )) as { data: unknown }
    expect(data).toEqual([
      {
        seriesLabels: {
          __name__: 'traces_spanmetrics_latency_bucket',
          ...{
            service: 'cart',
            span_name: 'GET /cart',
            span_kind: 'SPAN_KIND_SERVER',
            status_code: 'STATUS_CODE_UNSET',
          },
        },
        exemplars: [{ labels: { trace_id: hex(1, 32) }, value: '2', timestamp: (MINUTE + MINUTE_MS - 1) / 1_000 }],
      },
    ])
    expect(await read(`/prometheus/api/v1/query_exemplars?query=up&${times}`)).toMatchObject({ data: [] })
  })
})
