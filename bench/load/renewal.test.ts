import { fromBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { Metric } from '../../schemas/otlp/generated/opentelemetry/proto/metrics/v1/metrics_pb.js'
import type { Signal } from '../../schemas/queues/names.ts'
import { createChanges, findRenewable, renew } from './renewal.ts'
import { buildBodies } from './requests.ts'

const HEAD = Buffer.from('head')
const NOW_MS = 1_790_000_000_123

/** Returns a body of 45 records before and after its renewal. */
function renewed(signal: Signal): [Buffer, Buffer] {
  const [body = Buffer.alloc(0)] = buildBodies({ signal, spans: 45, pool: 1, freshIds: true })
  const bytes = Buffer.concat([HEAD, body])
  renew(bytes, findRenewable(signal, body, HEAD.length), createChanges(7)(), NOW_MS)
  expect(bytes.subarray(0, HEAD.length)).toEqual(HEAD)
  return [body, bytes.subarray(HEAD.length)]
}

const hex = (id: Uint8Array) => Buffer.from(id).toString('hex')
const least = (times: bigint[]) => BigUint64Array.from(times).sort()[0] ?? 0n

/** Expects that all times moved by the same amount and the first is now. Floats limit the precision to 256 ns. */
function expectMoved(before: bigint[], after: bigint[]): void {
  const by = least(after) - least(before)
  expect(after).toEqual(before.map(time => time + by))
  expect(Math.abs(Number(least(after) - BigInt(NOW_MS) * 1_000_000n))).toBeLessThanOrEqual(256)
}

function spansOf(body: Buffer) {
  return fromBinary(ExportTraceServiceRequestSchema, body)
    .resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .map(({ traceId, spanId, parentSpanId, startTimeUnixNano, endTimeUnixNano, ...rest }) => ({
      ids: [hex(traceId), hex(spanId)],
      parentId: hex(parentSpanId),
      times: [startTimeUnixNano, endTimeUnixNano],
      rest,
    }))
}

function logRecordsOf(body: Buffer) {
  return fromBinary(ExportLogsServiceRequestSchema, body)
    .resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
    .map(({ traceId, spanId, timeUnixNano, observedTimeUnixNano, ...rest }) => ({
      ids: [hex(traceId), hex(spanId)],
      times: [timeUnixNano, observedTimeUnixNano],
      rest,
    }))
}

function pointsOf(body: Buffer) {
  return fromBinary(ExportMetricsServiceRequestSchema, body)
    .resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
    .flatMap(({ name, data }: Metric) =>
      (data.value?.dataPoints ?? []).map(({ timeUnixNano, ...rest }) => ({
        ids: [],
        times: [timeUnixNano],
        rest: { name, ...rest },
      })),
    )
}

type RecordList = { ids: string[]; times: bigint[]; rest: object }[]
const RECORDS_OF: Record<Signal, (body: Buffer) => RecordList> = {
  traces: spansOf,
  logs: logRecordsOf,
  metrics: pointsOf,
}

it.each(['traces', 'logs', 'metrics'] as const)('renews the ids and times of %s, and nothing else', signal => {
  const [before, after] = renewed(signal).map(RECORDS_OF[signal]) as [RecordList, RecordList]
  expect(after).toHaveLength(45)
  expect(after.map(({ rest }) => rest)).toEqual(before.map(({ rest }) => rest))
  const [oldIds, newIds] = [before.flatMap(({ ids }) => ids), after.flatMap(({ ids }) => ids)]
  expect(new Set([...oldIds, ...newIds]).size).toBe(2 * new Set(oldIds).size)
  expectMoved(
    before.flatMap(({ times }) => times),
    after.flatMap(({ times }) => times),
  )
})

it('keeps every child with its parent and its trace', () => {
  const [, body = HEAD] = renewed('traces')
  const spans = spansOf(body)
  const traceOf = new Map(spans.map(({ ids: [traceId, spanId] }) => [spanId, traceId]))
  const children = spans.filter(({ parentId }) => parentId !== '')
  expect(children.length).toBeGreaterThan(0)
  for (const { ids, parentId } of children) expect(traceOf.get(parentId)).toBe(ids[0])
})

it('never repeats a change', () => {
  const nextChange = createChanges(0)
  const seen = new Set(Array.from({ length: 100_000 }, nextChange))
  expect(seen.size).toBe(100_000)
  expect(seen).not.toContain(0)
})
