import { toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { rounds } from '../../../test/support/length.ts'
import { expectedTables } from '../../../test/support/oracles/otlp-oracle.ts'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { traceRequest } from '../../../test/support/payloads/otlp-traces.ts'
import { scrambleMessage, seededRandom } from '../../../test/support/payloads/scramble-message.ts'
import { createSpansBatch } from './spans.ts'

const MESSAGES = rounds(3_000)
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }

describe('a batch of spans', () => {
  const batch = createSpansBatch()

  it(`contains the rows of the decoded messages (${MESSAGES} random messages in two encodings)`, () => {
    fc.assert(
      fc.property(traceRequest, fc.nat(), (request, seed) => {
        const plain = toBinary(ExportTraceServiceRequestSchema, request)
        const scrambled = scrambleMessage(plain, ExportTraceServiceRequestSchema, seededRandom(seed))
        const expected = expectedTables(ORIGIN, request)
        for (const body of [plain, scrambled]) {
          batch.reset()
          const result = batch.append(ORIGIN, Buffer.from(body))
          expect(result).toEqual({ ok: true, rows: expected.spans.length, rejected: expected.rejected })
          const tables = readTables(batch)
          expect(tables.get('spans') ?? []).toEqual(expected.spans)
          expect(tables.get('exceptions') ?? []).toEqual(expected.exceptions)
        }
      }),
      { numRuns: MESSAGES },
    )
  })
})
