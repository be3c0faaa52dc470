import { toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { rounds } from '../../../test/support/length.ts'
import { expectedPoints } from '../../../test/support/oracles/metrics-oracle.ts'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { unpackMessage } from '../../../test/support/oracles/unpack-message.ts'
import { metricsRequest } from '../../../test/support/payloads/otlp-metrics.ts'
import { scrambleMessage, seededRandom } from '../../../test/support/payloads/scramble-message.ts'
import { createMetricsBatch } from './metrics.ts'

const MESSAGES = rounds(3_000)
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }

describe('a batch of metrics', () => {
  const batch = createMetricsBatch()

  it(`contains the rows of the decoded messages (${MESSAGES} random messages in three encodings)`, () => {
    fc.assert(
      fc.property(metricsRequest, fc.nat(), (request, seed) => {
        const random = seededRandom(seed)
        const plain = toBinary(ExportMetricsServiceRequestSchema, request)
        const scrambled = scrambleMessage(plain, ExportMetricsServiceRequestSchema, random)
        const unpacked = unpackMessage(scrambled, ExportMetricsServiceRequestSchema, random)
        const expected = expectedPoints(ORIGIN, request)
        for (const body of [plain, scrambled, unpacked]) {
          batch.reset()
          const result = batch.append(ORIGIN as never, Buffer.from(body))
          expect(result).toEqual({ ok: true, rows: expected.points.length, rejected: expected.rejected })
          expect(readTables(batch).get('metric_points') ?? []).toEqual(expected.points)
        }
      }),
      { numRuns: MESSAGES },
    )
  })
})
