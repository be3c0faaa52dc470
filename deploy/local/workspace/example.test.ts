import { execFileSync } from 'node:child_process'
import { fromBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { exampleCommands, exampleExport } from './example.ts'

const NOW_MS = 1_780_000_000_123
const access = { baseUrl: 'http://127.0.0.1:4318', publicKey: 'pk_x', sessionToken: 'a.b.c' }

it('contains one failed span of this moment with an exception', () => {
  const { traceId, findingId, body } = exampleExport({ workspaceId: 'ws_1', surfaceId: 'srf_1' }, NOW_MS)
  const request = fromBinary(ExportTraceServiceRequestSchema, body)
  const [span] = request.resourceSpans[0]?.scopeSpans[0]?.spans ?? []
  expect(Buffer.from(span?.traceId ?? []).toString('hex')).toBe(traceId)
  expect(span?.endTimeUnixNano).toBe(BigInt(NOW_MS) * 1_000_000n)
  expect(span?.events.map(event => event.name)).toEqual(['exception'])
  expect(findingId).toMatch(/^fnd_[a-z2-7]{26}$/)
})

it('is sent by a shell command that decodes to the same bytes', () => {
  const example = exampleExport({ workspaceId: 'ws_1', surfaceId: 'srf_1' }, NOW_MS)
  const { send } = exampleCommands(example, access)
  const untilCurl = send.slice(0, send.indexOf('| curl'))
  expect(execFileSync('sh', ['-c', untilCurl])).toEqual(Buffer.from(example.body))
})
