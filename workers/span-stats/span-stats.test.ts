import { create, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { DAY_MS } from '../../schemas/units.ts'
import { rounds } from '../../test/support/length.ts'
import { readTables } from '../../test/support/oracles/read-tables.ts'
import { createSpansBatch } from '../otlp/traces/spans.ts'
import { createSpanStatsBatch } from './stats-batch.ts'

const ARRIVAL_MS = 1_790_000_010_000
const ARRIVAL = BigInt(ARRIVAL_MS) * 1_000_000n
const MINUTE = 60_000_000_000n
const SURFACES = [
  { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: ARRIVAL_MS },
  { workspaceId: 'ws_1', surfaceId: 'srf_2', receivedAtMs: ARRIVAL_MS + DAY_MS },
  { workspaceId: 'ws_2', surfaceId: 'srf_1', receivedAtMs: ARRIVAL_MS },
]

interface Span {
  readonly name: string
  readonly route: string
  readonly kind: number
  readonly code: number
  readonly status: number
  readonly end: bigint
  readonly duration: bigint
  readonly trace: number
}
interface Request {
  readonly surface: number
  readonly service: string
  readonly version: string
  readonly environment: string
  readonly spans: readonly Span[]
}

const span: fc.Arbitrary<Span> = fc.record({
  name: fc.constantFrom('GET /cart/{id}', 'GET', 'ü'.repeat(200), 'x'.repeat(300), 'other', ''),
  route: fc.constantFrom('', '', '/cart/{id}', '/{x}'),
  kind: fc.nat(5),
  code: fc.nat(2),
  status: fc.constantFrom(0, 100, 200, 204, 404, 503, 599, 600, 999),
  end: fc.oneof(
    fc.constantFrom(
      ARRIVAL,
      ARRIVAL - (ARRIVAL % MINUTE),
      ARRIVAL - (ARRIVAL % MINUTE) - 1n,
      ARRIVAL + 5n * MINUTE,
      0n,
      2n ** 64n - 1n,
    ),
    fc.bigInt(ARRIVAL - 4n * MINUTE, ARRIVAL),
  ),
  duration: fc.oneof(fc.constantFrom(0n, 1n, 2n, 1_000_000n, -5n, 2n ** 60n), fc.bigInt(1n, 10n ** 10n)),
  trace: fc.integer({ min: 1, max: 255 }),
})
const request: fc.Arbitrary<Request> = fc.record({
  surface: fc.nat(2),
  service: fc.constantFrom('shop', 'cart', ''),
  version: fc.constantFrom('', '1.2.3', '"\n'),
  environment: fc.constantFrom('', 'prod', 'ä"\n'),
  spans: fc.array(span, { minLength: 1, maxLength: 20 }),
})

const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })
const int = (key: string, value: number) => ({
  key,
  value: { value: { case: 'intValue' as const, value: BigInt(value) } },
})
const startOf = ({ end, duration }: Span) => (duration > end ? 0n : BigInt.asUintN(64, end - duration))

function encode({ service, version, environment, spans }: Request): Buffer {
  const attributes = [
    ...(service === '' ? [] : [text('service.name', service)]),
    ...(version === '' ? [] : [text('service.version', version)]),
    ...(environment === '' ? [] : [text('deployment.environment.name', environment)]),
  ]
  const message = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [
      {
        resource: { attributes },
        scopeSpans: [
          {
            spans: spans.map(one => ({
              traceId: new Uint8Array(16).fill(one.trace),
              spanId: new Uint8Array(8).fill(1),
              name: one.name,
              kind: one.kind,
              status: { code: one.code },
              startTimeUnixNano: startOf(one),
              endTimeUnixNano: one.end,
              attributes: [
                ...(one.route === '' ? [] : [text('http.route', one.route)]),
                ...(one.status === 0 ? [] : [int('http.response.status_code', one.status)]),
              ],
            })),
          },
        ],
      },
    ],
  })
  return Buffer.from(toBinary(ExportTraceServiceRequestSchema, message))
}

const spans = createSpansBatch()
const stats = createSpanStatsBatch()

/** Makes rows of requests as the queues `traces` and `span-stats` do. */
function statsOf(requests: readonly Request[]) {
  const options = { contentType: 'application/x-protobuf', contentEncoding: 'identity', attributes: '' } as const
  spans.reset()
  stats.reset()
  for (const one of requests) {
    const origin = SURFACES[one.surface] as (typeof SURFACES)[number]
    expect(spans.append({ ...options, ...origin }, encode(one)).ok).toBe(true)
  }
  for (const frame of spans.spanStats?.().flat() ?? []) expect(stats.append(frame as never, frame.body).ok).toBe(true)
  return readTables(stats).get('span_stats') ?? []
}

function bucketOf(nanoseconds: bigint): number {
  if (nanoseconds === 0n) return 0
  let bucket = 1
  while (2 ** ((bucket - 1) / 32) < Number(nanoseconds) * (1 - 1e-12)) bucket++
  return bucket
}

function cut(name: string): string {
  let short = name
  while (Buffer.byteLength(short) > 256) short = short.slice(0, -1)
  return short
}

/** Counts with plain objects, row by row. */
function expectedStats(requests: readonly Request[]) {
  const rows = new Map<string, { spans: number; sum: bigint; slowest: bigint; durations: Map<number, number> }>()
  for (const { surface, service, version, environment, spans: sent } of requests) {
    const { workspaceId, surfaceId, receivedAtMs } = SURFACES[surface] as (typeof SURFACES)[number]
    for (const one of sent) {
      const end = one.end < BigInt(receivedAtMs) * 1_000_000n ? one.end : BigInt(receivedAtMs) * 1_000_000n
      const operation = cut(one.name.includes(one.route) ? one.name : one.route)
      const statusClass = one.status >= 600 ? 0 : Math.floor(one.status / 100)
      const key = JSON.stringify([
        ...[Math.floor(receivedAtMs / DAY_MS), workspaceId, surfaceId, service, 60 * Number(end / MINUTE), operation],
        ...[one.kind, one.code, statusClass, environment, version],
      ])
      const raw = one.end - startOf(one)
      const duration = raw < 0n ? 0n : raw > 2n ** 52n ? 2n ** 52n : raw
      const row = rows.get(key) ?? { spans: 0, sum: 0n, slowest: 0n, durations: new Map<number, number>() }
      row.spans++
      row.sum += duration
      if (duration > row.slowest) row.slowest = duration
      const bucket = bucketOf(duration)
      row.durations.set(bucket, (row.durations.get(bucket) ?? 0) + 1)
      rows.set(key, row)
    }
  }
  return rows
}

const utf8 = (value: unknown) => Buffer.from(String(value), 'latin1').toString()

it('counts each span once in its minute, whatever came with it', () => {
  fc.assert(
    fc.property(fc.array(request, { minLength: 1, maxLength: 6 }), requests => {
      const found = statsOf(requests).map(row => {
        const key = JSON.stringify([
          ...[
            Number(row.received_at) / DAY_MS,
            utf8(row.workspace_id),
            utf8(row.surface_id),
            utf8(row.service_name),
            row.minute,
          ],
          ...[utf8(row.operation), row.kind, row.status_code, row.http_status_class],
          ...[utf8(row.environment), utf8(row.service_version)],
        ])
        const durations = new Map(
          (row.durations as [number, bigint][]).map(([bucket, count]) => [bucket, Number(count)]),
        )
        const slowest = (row.slowest as { duration_nano: bigint }).duration_nano
        return [key, { spans: Number(row.spans), sum: row.duration_sum_nano, slowest, durations }] as const
      })
      expect(new Map(found)).toEqual(expectedStats(requests))
      expect(found.length).toBe(new Map(found).size)
    }),
    { numRuns: rounds(300) },
  )
})

it('names the trace of the slowest span', () => {
  const base = { name: 'GET', route: '', kind: 2, code: 0, status: 200, end: ARRIVAL }
  const sent = [3n, 9n, 9n, 1n].map((duration, i) => ({ ...base, duration, trace: i + 1 }))
  const [row] = statsOf([{ surface: 0, service: 'shop', version: '', environment: '', spans: sent }])
  expect(row?.slowest).toEqual({ duration_nano: 9n, trace_id: '02'.repeat(16) })
})

it('has at most 1,000 keys of a surface, then those of its services, then one', () => {
  const base = { route: '', kind: 2, code: 0, status: 200, end: ARRIVAL, duration: 5n, trace: 1 }
  const of = (surface: number, service: string, names: readonly string[]): Request => ({
    ...{ surface, service, version: '', environment: '', spans: names.map(name => ({ ...base, name })) },
  })
  const names = Array.from({ length: 1_200 }, (_, i) => `user ${i}`)
  const services = Array.from({ length: 700 }, (_, i) => of(0, `service ${i}`, ['GET']))
  const rows = statsOf([of(0, 'shop', names), ...services, of(1, 'shop', names.slice(0, 10))])
  const ofSurface = (surfaceId: string) => rows.filter(row => row.surface_id === surfaceId)
  const spansOf = (found: typeof rows) => found.reduce((sum, row) => sum + Number(row.spans), 0)
  const isOther = (row: (typeof rows)[number]) => row.operation === 'other'
  const first = ofSurface('srf_1').filter(row => row.workspace_id === 'ws_1')
  expect(first.length).toBe(1_501)
  expect(spansOf(first)).toBe(1_900)
  expect(spansOf(first.filter(row => row.service_name === 'shop'))).toBe(1_200)
  expect(spansOf(first.filter(row => row.service_name === 'shop' && isOther(row)))).toBe(200)
  expect(spansOf(first.filter(row => row.service_name === 'other'))).toBe(700 - 499)
  expect(ofSurface('srf_2').filter(isOther)).toEqual([])
})

it('has payloads of about 1 MiB at most', () => {
  const base = { route: '', kind: 2, code: 0, status: 200, duration: 5n, trace: 1 }
  const many = Array.from({ length: 900 }, (_, i) => ({ ...base, name: `${i} ${'x'.repeat(250)}`, end: ARRIVAL }))
  const requests = [0, 1, 2].flatMap(surface =>
    ['a', 'b'].map(service => ({
      ...{
        surface,
        service: service.repeat(1_000),
        version: 'v'.repeat(256),
        environment: 'e'.repeat(256),
        spans: many,
      },
    })),
  )
  const rows = statsOf(requests)
  const pieces = spans.spanStats?.() ?? []
  expect(pieces.length).toBeGreaterThan(3)
  for (const piece of pieces) {
    expect(piece.reduce((sum, { body }) => sum + body.length, 0)).toBeLessThan(1.1 * 1024 * 1024)
  }
  expect(rows.reduce((sum, row) => sum + Number(row.spans), 0)).toBe(5_400)
})
