import { create } from '@bufbuild/protobuf'
import fc from 'fast-check'
import {
  type ExportLogsServiceRequest,
  ExportLogsServiceRequestSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { anyValue, attributes, EXCEPTION_KEYS, keyValue, resource, scope, text, uint32, uint64 } from './otlp-values.ts'

/** Ids that are mostly valid, often absent and sometimes of another length. */
const id = (length: number) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.uint8Array({ minLength: length, maxLength: length }) },
    { weight: 4, arbitrary: fc.constant(new Uint8Array()) },
    { weight: 1, arbitrary: fc.constant(new Uint8Array(length)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 20 }) },
  )

const severityNumber = fc.oneof(
  { weight: 5, arbitrary: fc.nat(24) },
  { weight: 2, arbitrary: fc.constantFrom(25, 127, 128, 255, 256, -1, 2 ** 31 - 1, -(2 ** 31)) },
)

const record = fc.record(
  {
    timeUnixNano: fc.oneof(uint64, fc.constantFrom(2n ** 63n - 1n, 2n ** 63n)),
    observedTimeUnixNano: fc.oneof(uint64, fc.constantFrom(2n ** 63n - 1n, 2n ** 63n)),
    severityNumber,
    severityText: fc.oneof(text, fc.constantFrom('INFO', 'ERROR')),
    body: anyValue,
    attributes: fc.oneof(
      { weight: 3, arbitrary: attributes },
      {
        weight: 1,
        arbitrary: fc.array(
          fc.oneof(keyValue, fc.record({ key: fc.constantFrom(...EXCEPTION_KEYS), value: anyValue })),
          { maxLength: 6 },
        ),
      },
    ),
    droppedAttributesCount: uint32,
    flags: uint32,
    traceId: id(16),
    spanId: id(8),
    eventName: text,
  },
  { requiredKeys: [] },
)

/** Generates random ExportLogsServiceRequest messages. */
export const logsRequest: fc.Arbitrary<ExportLogsServiceRequest> = fc
  .array(
    fc.record(
      {
        resource,
        schemaUrl: text,
        scopeLogs: fc.array(
          fc.record(
            { scope, schemaUrl: text, logRecords: fc.array(record, { maxLength: 4 }) },
            { requiredKeys: ['logRecords'] },
          ),
          { maxLength: 2 },
        ),
      },
      { requiredKeys: ['scopeLogs'] },
    ),
    { maxLength: 2 },
  )
  .map(resourceLogs => create(ExportLogsServiceRequestSchema, { resourceLogs } as never))
