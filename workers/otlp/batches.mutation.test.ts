import { toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { leastCpuMs } from '../../test/support/least-cpu-ms.ts'
import { rounds } from '../../test/support/length.ts'
import { readTables } from '../../test/support/oracles/read-tables.ts'
import { amid, mutatePayload } from '../../test/support/payloads/mutate-payload.ts'
import { logsRequest } from '../../test/support/payloads/otlp-logs.ts'
import { metricsRequest } from '../../test/support/payloads/otlp-metrics.ts'
import { traceRequest } from '../../test/support/payloads/otlp-traces.ts'
import { seededRandom } from '../../test/support/payloads/scramble-message.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { createLogsBatch } from './logs/logs.ts'
import { createMetricsBatch } from './metrics/metrics.ts'
import { createSpansBatch } from './traces/spans.ts'

const PAYLOADS = rounds(100_000)
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 } as never
/** After each of this many payloads the rows themselves are read and compared. */
const READ_EVERY = 100
const MAX_MS = 100

const SIGNALS = {
  spans: {
    createBatch: createSpansBatch,
    messages: traceRequest.map(request => toBinary(ExportTraceServiceRequestSchema, request)),
  },
  logs: {
    createBatch: createLogsBatch,
    messages: logsRequest.map(request => toBinary(ExportLogsServiceRequestSchema, request)),
  },
  metrics: {
    createBatch: createMetricsBatch,
    messages: metricsRequest.map(request => toBinary(ExportMetricsServiceRequestSchema, request)),
  },
}

it.each(Object.entries(SIGNALS))(
  `a batch of %s accepts or refuses ${PAYLOADS} broken payloads as a whole, quickly, and without reading past their end`,
  (_, { createBatch, messages }) => {
    const originals = fc.sample(messages, { numRuns: 300, seed: 42 }).filter(bytes => bytes.length > 40)
    const random = seededRandom(42)
    // The same payload in two surroundings: what is read past its end shows in the rows or in the verdict.
    const batches = [createBatch(), createBatch()] as const
    const outcomes = new Map<string, number>()
    const slow: Buffer[] = []
    for (let i = 0; i < PAYLOADS; i++) {
      const body = mutatePayload(originals[i % originals.length] as Uint8Array, random)
      const [first, second] = batches
      const before = [first.rows, first.bytes].join()
      const startedAt = performance.now()
      const result = first.append(ORIGIN, amid(body, 0x00))
      if (performance.now() - startedAt > MAX_MS) slow.push(body)
      const verdict = JSON.stringify(result)
      if (JSON.stringify(second.append(ORIGIN, amid(body, 0xff))) !== verdict) {
        expect.fail(`what surrounds the payload changes its verdict: ${body.toString('hex')}`)
      }
      if (!result.ok && [first.rows, first.bytes].join() !== before) {
        expect.fail(`something of a refused payload remains: ${body.toString('hex')}`)
      }
      const outcome = result.ok ? 'ok' : result.reason
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      if (i % READ_EVERY === READ_EVERY - 1) {
        expect(blockBytes(first).equals(blockBytes(second))).toBe(true)
        readTables(first) // throws unless every block is whole
        for (const batch of batches) batch.reset()
      }
    }
    expect([...outcomes.keys()].sort()).toEqual(['invalid_tag', 'no_records', 'ok', 'overlong_varint', 'truncated'])
    for (const count of outcomes.values()) expect(count).toBeGreaterThan(PAYLOADS / 1_000)
    // The machine may pause; a payload that is slow by itself is slow again.
    for (const body of slow) expect(leastCpuMs(() => createBatch().append(ORIGIN, body), MAX_MS)).toBeLessThan(MAX_MS)
  },
)

function blockBytes(batch: RowBatch): Buffer {
  return Buffer.concat(batch.tables().flatMap(({ block }) => block))
}
