import { type DescEnum, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { MESSAGE_SPECS } from '../protobuf/message-specs.ts'
import { ENUM_SPECS } from './json-schema.ts'

const messages = new Map<string, DescMessage>()
const enums = new Map<string, DescEnum>()
collect(ExportTraceServiceRequestSchema)
collect(ExportLogsServiceRequestSchema)
collect(ExportMetricsServiceRequestSchema)

describe('the JSON schema', () => {
  it('has every message, field and type of the generated code, and no others', () => {
    const expected = [...messages.values()].map(desc => [
      desc.name,
      Object.fromEntries(desc.fields.map(field => [field.jsonName, specOf(field)])),
    ])
    expect(MESSAGE_SPECS).toEqual(Object.fromEntries(expected))
  })

  it('has every name of every enum', () => {
    const expected = [...enums.values()].map(desc => [desc.name, desc.values.map(value => value.name)])
    expect(ENUM_SPECS).toEqual(Object.fromEntries(expected))
    for (const desc of enums.values()) {
      expect(desc.values.map(value => value.number)).toEqual(desc.values.map((_, index) => index))
    }
  })
})

/** Types by their simple names: none of OTLP's is used twice. */
function collect(desc: DescMessage): void {
  const known = messages.get(desc.name)
  if (known !== undefined && known !== desc) throw new Error(`there are two messages ${desc.name}`)
  if (known !== undefined) return
  messages.set(desc.name, desc)
  for (const field of desc.fields) {
    if (field.message) collect(field.message)
    if (field.enum) enums.set(field.enum.name, field.enum)
  }
}

function specOf(field: DescField): unknown[] {
  return field.fieldKind === 'list' ? [field.number, typeOf(field), 'repeated'] : [field.number, typeOf(field)]
}

function typeOf(field: DescField): string {
  if (field.message) return field.message.name
  if (field.enum) return field.enum.name
  // OTLP, "JSON Protobuf Encoding": ids of traces and spans are hex, other bytes base64.
  if (field.scalar === ScalarType.BYTES && /^(trace|span|parent_span)_id$/.test(field.name)) return 'id'
  if (field.name.endsWith('time_unix_nano')) return 'time'
  return (ScalarType[field.scalar as ScalarType] as string).toLowerCase()
}
