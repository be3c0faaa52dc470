import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { rounds } from '../../test/support/length.ts'
import { expectedLogTables } from '../../test/support/oracles/logs-oracle.ts'
import { expectedPoints } from '../../test/support/oracles/metrics-oracle.ts'
import { expectedTables } from '../../test/support/oracles/otlp-oracle.ts'
import { readTables } from '../../test/support/oracles/read-tables.ts'
import { unpackMessage } from '../../test/support/oracles/unpack-message.ts'
import { withExceptions } from '../../test/support/oracles/with-exceptions.ts'
import { logsRequest } from '../../test/support/payloads/otlp-logs.ts'
import { metricsRequest } from '../../test/support/payloads/otlp-metrics.ts'
import { traceRequest } from '../../test/support/payloads/otlp-traces.ts'
import { scrambleMessage, seededRandom } from '../../test/support/payloads/scramble-message.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { createLogsBatch } from './logs/logs.ts'
import { createMetricsBatch } from './metrics/metrics.ts'
import { createSpansBatch } from './traces/spans.ts'

const MESSAGES = rounds(3_000)
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }

it(`a batch of spans contains the rows of ${MESSAGES} random messages in three encodings`, () => {
  expectRows(withExceptions(createSpansBatch()), ExportTraceServiceRequestSchema, traceRequest, request => {
    const { spans, exceptions, failures, rejected } = expectedTables(ORIGIN, request)
    return { rows: spans.length, rejected, tables: { spans, exceptions, failures } }
  })
})

it(`a batch of logs contains the rows of ${MESSAGES} random messages in three encodings`, () => {
  const rows = { logs: 0, exceptions: 0 }
  expectRows(withExceptions(createLogsBatch()), ExportLogsServiceRequestSchema, logsRequest, request => {
    const { logs, exceptions, rejected } = expectedLogTables(ORIGIN, request)
    rows.logs += logs.length
    rows.exceptions += exceptions.length
    return { rows: logs.length, rejected, tables: { logs, exceptions } }
  })
  expect(rows.logs).toBeGreaterThan(MESSAGES)
  expect(rows.exceptions).toBeGreaterThan(MESSAGES / 20)
})

it(`a batch of metrics contains the rows of ${MESSAGES} random messages in three encodings`, () => {
  expectRows(createMetricsBatch(), ExportMetricsServiceRequestSchema, metricsRequest, request => {
    const { points, rejected } = expectedPoints(ORIGIN, request)
    return { rows: points.length, rejected, tables: { metric_points: points } }
  })
})

interface Expected {
  readonly rows: number
  readonly rejected: object
  readonly tables: Readonly<Record<string, unknown[]>>
}

function expectRows<T extends Message>(
  batch: RowBatch,
  schema: DescMessage,
  requests: fc.Arbitrary<T>,
  expectedOf: (request: T) => Expected,
): void {
  const property = fc.property(requests, fc.nat(), (request, seed) => {
    const random = seededRandom(seed)
    const plain = toBinary(schema, request)
    const scrambled = scrambleMessage(plain, schema, random)
    const { rows, rejected, tables } = expectedOf(request)
    for (const body of [plain, scrambled, unpackMessage(scrambled, schema, random)]) {
      batch.reset()
      const hasRecords = rows > 0 || Object.keys(rejected).length > 0
      const result = batch.append(ORIGIN as never, Buffer.from(body))
      if (body.length > 0 && !hasRecords) expect(result.ok || result.reason).toBeOneOf([true, 'no_records'])
      else expect(result).toEqual({ ok: true, rows, rejected })
      const read = readTables(batch)
      for (const [name, expected] of Object.entries(tables)) expect(read.get(name) ?? []).toEqual(expected)
    }
  })
  fc.assert(property, { numRuns: MESSAGES })
}
