import { randomBytes } from 'node:crypto'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { afterAll, expect } from 'vitest'
import { insertNative } from '../../../../clickhouse/client.ts'
import { type MetricSeries, metricSeriesSchema } from '../../../../schemas/http/metrics.ts'
import { ExportMetricsServiceRequestSchema } from '../../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import type { MetricSchema } from '../../../../schemas/otlp/generated/opentelemetry/proto/metrics/v1/metrics_pb.js'
import { HOUR_MS } from '../../../../schemas/units.ts'
import { createMetricsBatch } from '../../../../workers/otlp/metrics/metrics.ts'
import { type Answer, call, createDatabase, putWorkspace, signToken, startApi } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const DATABASE = `api_metrics_${process.pid}`
const services = sharedServices()
export const client = await createDatabase(services.clickhouseUrl, DATABASE)
await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
export const api = await startApi(services, DATABASE)
const token = await signToken()
export const otherToken = await signToken({ org: 'globex', sub: 'user_2' })

afterAll(async () => {
  await api.stop()
  await client.command({ query: `DROP DATABASE ${DATABASE}` })
  await client.close()
})

/** Beginning of the times of the tests: whole hours, an hour or two ago. */
export const BASE_MS = Math.floor(Date.now() / HOUR_MS - 1) * HOUR_MS

/** Time of a point, in seconds after the beginning. */
export const nano = (seconds: number) => BigInt(Math.round(BASE_MS + seconds * 1_000)) * 1_000_000n
export const iso = (seconds: number) => new Date(BASE_MS + seconds * 1_000).toISOString()

/** A Metric of OTLP. */
export type SentMetric = MessageInitShape<typeof MetricSchema>

/** Attributes of OTLP with these texts. */
const attributes = (texts: Readonly<Record<string, string>> = {}) =>
  Object.entries(texts).map(([key, value]) => ({ key, value: { value: { case: 'stringValue' as const, value } } }))

const DELTA = 1
const CUMULATIVE = 2

/** A point of a gauge or a sum: its time, its value, and what differs from other points. */
export interface Sent {
  readonly at: number
  readonly value: number
  readonly since?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly flags?: number
}

const numbers = (points: readonly Sent[]) =>
  points.map(({ at, value, since, labels, flags = 0 }) => ({
    ...{ timeUnixNano: nano(at), value: { case: 'asDouble' as const, value }, attributes: attributes(labels), flags },
    startTimeUnixNano: since === undefined ? 0n : nano(since),
  }))

export const gauge = (name: string, points: readonly Sent[], unit = ''): SentMetric => ({
  ...{ name, unit },
  data: { case: 'gauge', value: { dataPoints: numbers(points) } },
})

export const sum = (
  name: string,
  points: readonly Sent[],
  { aggregationTemporality = CUMULATIVE, isMonotonic = true, unit = '' } = {},
): SentMetric => ({
  ...{ name, unit },
  data: { case: 'sum', value: { dataPoints: numbers(points), aggregationTemporality, isMonotonic } },
})
export const deltas = (name: string, points: readonly Sent[]) => sum(name, points, { aggregationTemporality: DELTA })

/** A point of a histogram. The sum of the observations is `total`. */
export interface SentHistogram extends Omit<Sent, 'value'> {
  readonly counts: readonly number[]
  readonly bounds: readonly number[]
  readonly total?: number
}

export const histogram = (
  name: string,
  points: readonly SentHistogram[],
  aggregationTemporality = CUMULATIVE,
): SentMetric => ({
  name,
  data: {
    case: 'histogram',
    value: {
      aggregationTemporality,
      dataPoints: points.map(({ at, since, counts, bounds, total, labels }) => ({
        ...{ timeUnixNano: nano(at), startTimeUnixNano: since === undefined ? 0n : nano(since) },
        ...{ bucketCounts: counts.map(BigInt), explicitBounds: [...bounds], attributes: attributes(labels) },
        count: BigInt(counts.reduce((all, count) => all + count, 0)),
        ...(total !== undefined && { sum: total }),
      })),
    },
  },
})
export const deltaHistogram = (name: string, points: readonly SentHistogram[]) => histogram(name, points, DELTA)

let names = 0
/** A name that no other metric has. */
export const newName = (text = 'metric') => `${text}.${names++}`

/** Stores metrics as a worker does. */
export async function store(
  metrics: readonly SentMetric[],
  { workspaceId = 'ws_1', surfaceId = 'srf_1', service = 'shop' } = {},
): Promise<void> {
  const resource = { attributes: attributes({ 'service.name': service }) }
  const request = create(ExportMetricsServiceRequestSchema, {
    resourceMetrics: [{ resource, scopeMetrics: [{ metrics: [...metrics] }] }],
  })
  const batch = createMetricsBatch()
  const body = Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request))
  const source = { workspaceId, surfaceId, receivedAtMs: Date.now() }
  expect(batch.append(source as never, body)).toMatchObject({ ok: true })
  for (const [i, block] of batch.tables().entries()) {
    const deduplicationToken = `${randomBytes(8).toString('hex')}:${i}`
    await insertNative(client, { ...block, deduplicationToken, timeoutMs: 30_000 })
  }
}

/** Sends a request; the parameters are a query. */
export function ask(path: string, parameters: Record<string, string> = {}, bearer = token): Promise<Answer> {
  return call(api.baseUrl, `GET ${path}?${new URLSearchParams(parameters)}`, { bearer })
}

/** Parameters of a request for series; times are seconds after the beginning. */
export interface SeriesParameters {
  readonly from?: number
  readonly to?: number
  readonly step?: number
  readonly groupBy?: readonly string[]
  readonly filter?: Readonly<Record<string, string>>
  readonly [name: string]: unknown
}

export function askSeries(name: string, parameters: SeriesParameters = {}, bearer = token): Promise<Answer> {
  const { from = 0, to = 240, step = 60, groupBy, filter, ...rest } = parameters
  return ask(
    `/v3/metrics/${encodeURIComponent(name)}/series`,
    {
      ...{ from: iso(from), to: iso(to), step: String(step) },
      ...(groupBy && { groupBy: JSON.stringify(groupBy) }),
      ...(filter && { filter: JSON.stringify(filter) }),
      ...Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, String(value)])),
    },
    bearer,
  )
}

export async function readSeries(name: string, parameters: SeriesParameters = {}): Promise<MetricSeries> {
  const { status, body } = await askSeries(name, parameters)
  expect({ status, body }).toMatchObject({ status: 200 })
  return metricSeriesSchema.parse(body)
}

/** Returns the values of the only series. */
export async function readValues(name: string, parameters: SeriesParameters = {}): Promise<(number | null)[]> {
  const { series } = await readSeries(name, parameters)
  expect(series).toHaveLength(1)
  return series[0]?.values ?? []
}
