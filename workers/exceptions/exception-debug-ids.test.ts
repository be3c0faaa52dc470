import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { readTables } from '../../test/support/oracles/read-tables.ts'
import { withExceptions } from '../../test/support/oracles/with-exceptions.ts'
import { createLogsBatch } from '../otlp/logs/logs.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: Date.UTC(2026, 10, 20) }
const FRAME = {
  ...ORIGIN,
  contentType: 'application/x-protobuf' as const,
  contentEncoding: 'identity' as const,
  attributes: '',
  body: Buffer.alloc(0),
}
const URL_A = 'https://a.test/x.js'
const ID = '85314830-023f-4cf1-a267-535f4e37bb17'

const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })

/** A log record that is an exception, with the debug ids that a client has sent. */
function record(debugIds: unknown) {
  const stack = `Error\n    at f (${URL_A}:1:2)`
  const attributes = [text('exception.type', 'Error'), text('exception.stacktrace', stack)]
  if (typeof debugIds === 'string') attributes.push(text('exception.debug_ids', debugIds))
  const message = create(ExportLogsServiceRequestSchema, {
    resourceLogs: [{ scopeLogs: [{ logRecords: [{ attributes }] }] }],
  })
  return Buffer.from(toBinary(ExportLogsServiceRequestSchema, message))
}

describe('the debug ids of an exception', () => {
  it('are stored with it and go with its stack, also behind a payload that was refused', () => {
    const batch = withExceptions(createLogsBatch())
    const ids = JSON.stringify({ [URL_A]: ID.toUpperCase(), 'b.js': ID })
    expect(batch.append(FRAME, record(ids)).ok).toBe(true)
    const refused = Buffer.concat([record(ids), Buffer.from([0x0a, 0x7f])])
    expect(batch.append(FRAME, refused).ok).toBe(false)
    for (const sent of [undefined, 'not JSON', JSON.stringify({ 'c.js': ID })]) {
      expect(batch.append(FRAME, record(sent)).ok).toBe(true)
    }
    const rows = readTables(batch).get('exceptions')
    expect(rows?.map(row => row.debug_ids)).toEqual([
      [
        [URL_A, ID],
        ['b.js', ID],
      ],
      [],
      [],
      [['c.js', ID]],
    ])
    const requests = (batch.stackRequests?.() ?? []).map(({ body }) => JSON.parse(body.toString()))
    expect(requests).toMatchObject([{ kind: 'stack', debugIds: { [URL_A]: ID, 'b.js': ID } }])
  })
})
