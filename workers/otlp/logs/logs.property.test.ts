import { toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { rounds } from '../../../test/support/length.ts'
import { expectedLogTables } from '../../../test/support/oracles/logs-oracle.ts'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { logsRequest } from '../../../test/support/payloads/otlp-logs.ts'
import { scrambleMessage, seededRandom } from '../../../test/support/payloads/scramble-message.ts'
import { createLogsBatch } from './logs.ts'

const MESSAGES = rounds(3_000)
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }

describe('a batch of logs', () => {
  const batch = createLogsBatch()

  it(`contains the rows of the decoded messages (${MESSAGES} random messages in two encodings)`, () => {
    const rows = { logs: 0, exceptions: 0 }
    fc.assert(
      fc.property(logsRequest, fc.nat(), (request, seed) => {
        const plain = toBinary(ExportLogsServiceRequestSchema, request)
        const scrambled = scrambleMessage(plain, ExportLogsServiceRequestSchema, seededRandom(seed))
        const expected = expectedLogTables(ORIGIN, request)
        for (const body of [plain, scrambled]) {
          batch.reset()
          const result = batch.append(ORIGIN as never, Buffer.from(body))
          expect(result).toEqual({ ok: true, rows: expected.logs.length, rejected: expected.rejected })
          const tables = readTables(batch)
          expect(tables.get('logs') ?? []).toEqual(expected.logs)
          expect(tables.get('exceptions') ?? []).toEqual(expected.exceptions)
        }
        rows.logs += expected.logs.length
        rows.exceptions += expected.exceptions.length
      }),
      { numRuns: MESSAGES },
    )
    expect(rows.logs).toBeGreaterThan(MESSAGES)
    expect(rows.exceptions).toBeGreaterThan(MESSAGES / 20)
  })
})
