import { randomUUID } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { type ClickHouseClient, insertNative } from '../../../clickhouse/client.ts'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { createLogsBatch } from '../../../workers/otlp/logs/logs.ts'

/** Log record to store; absent fields have defaults. */
export interface StoredLog {
  readonly workspaceId?: string
  readonly surfaceId?: string
  /** Time of arrival in Unix milliseconds. */
  readonly receivedAtMs?: number
  readonly serviceName?: string
  readonly serviceVersion?: string
  /** The time of arrival if absent. */
  readonly timeUnixNano?: bigint
  readonly severityNumber?: number
  readonly severityText?: string
  readonly body?: string
  /** Attributes of the record, all of them texts. */
  readonly attributes?: Readonly<Record<string, string>>
  /** Hex. */
  readonly traceId?: string
  /** Hex. */
  readonly spanId?: string
}

/** Stores log records as a worker does, in one insert. */
export async function insertLogs(client: ClickHouseClient, logs: readonly StoredLog[]): Promise<void> {
  const batch = createLogsBatch()
  const nowMs = Date.now()
  for (const log of logs) {
    const { workspaceId = 'ws_1', surfaceId = 'srf_1', receivedAtMs = nowMs } = log
    const appended = batch.append({ workspaceId, surfaceId, receivedAtMs }, exportOf(log))
    if (!appended.ok || appended.rows !== 1) throw new Error(`a record was refused: ${JSON.stringify(appended)}`)
  }
  const token = randomUUID()
  for (const [i, block] of batch.tables().entries()) {
    await insertNative(client, { ...block, deduplicationToken: `${token}:${i}`, timeoutMs: 30_000 })
  }
}

function exportOf(log: StoredLog): Buffer {
  const { serviceName = 'shop', serviceVersion, traceId = '', spanId = '', body } = log
  const { timeUnixNano = 0n, severityNumber = 0, severityText = '', attributes = {} } = log
  const resource = {
    'service.name': serviceName,
    ...(serviceVersion !== undefined && { 'service.version': serviceVersion }),
  }
  const request = create(ExportLogsServiceRequestSchema, {
    resourceLogs: [
      {
        resource: { attributes: textsOf(resource) },
        scopeLogs: [
          {
            logRecords: [
              {
                ...{ timeUnixNano, severityNumber, severityText },
                ...(body !== undefined && { body: { value: { case: 'stringValue' as const, value: body } } }),
                attributes: textsOf(attributes),
                traceId: Buffer.from(traceId, 'hex'),
                spanId: Buffer.from(spanId, 'hex'),
              },
            ],
          },
        ],
      },
    ],
  })
  return Buffer.from(toBinary(ExportLogsServiceRequestSchema, request))
}

function textsOf(attributes: Readonly<Record<string, string>>) {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: { value: { case: 'stringValue' as const, value } },
  }))
}
