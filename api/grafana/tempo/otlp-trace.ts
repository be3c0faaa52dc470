import { create, type MessageInitShape, toBinary, toJson } from '@bufbuild/protobuf'
import type { AttributeColumns, AttributeType } from '../../../clickhouse/queries/attributes/attribute-columns.ts'
import type { SpanDetailsRow } from '../../../clickhouse/queries/traces/select-span-details.ts'
import type { AnyValueSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import {
  type ResourceSpansSchema,
  type SpanSchema,
  type TracesData,
  TracesDataSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { parseJson } from '../../http/parse-json.ts'
import type { WholeTrace } from '../../traces/spans/load-all-spans.ts'

type Value = MessageInitShape<typeof AnyValueSchema>

/** Returns a trace as the message of OTLP. Spans of the same resource and scope are together. */
export function otlpTrace({ traceId, rows }: WholeTrace): TracesData {
  const resources = new Map<string, { resource: SpanDetailsRow; scopes: Map<string, SpanDetailsRow[]> }>()
  for (const row of rows) {
    const { resourceJson, resourceSchemaUrl, resourceDroppedAttributesCount } = row
    const ofResource = JSON.stringify([
      row.serviceName,
      resourceJson,
      resourceSchemaUrl,
      resourceDroppedAttributesCount,
    ])
    const resource = resources.get(ofResource) ?? { resource: row, scopes: new Map() }
    resources.set(ofResource, resource)
    const { scopeName, scopeVersion, scopeAttributes, scopeSchemaUrl, scopeDroppedAttributesCount } = row
    const ofScope = JSON.stringify([
      scopeName,
      scopeVersion,
      scopeAttributes,
      scopeSchemaUrl,
      scopeDroppedAttributesCount,
    ])
    const spans = resource.scopes.get(ofScope) ?? []
    resource.scopes.set(ofScope, spans)
    spans.push(row)
  }
  const resourceSpans = [...resources.values()].map(
    ({ resource, scopes }): MessageInitShape<typeof ResourceSpansSchema> => ({
      resource: {
        attributes: ofObject(resource.resourceJson),
        droppedAttributesCount: resource.resourceDroppedAttributesCount,
      },
      schemaUrl: resource.resourceSchemaUrl,
      scopeSpans: [...scopes.values()].map(spans => {
        const [scope] = spans as [SpanDetailsRow, ...SpanDetailsRow[]]
        return {
          scope: {
            name: scope.scopeName,
            version: scope.scopeVersion,
            attributes: ofObject(scope.scopeAttributes),
            droppedAttributesCount: scope.scopeDroppedAttributesCount,
          },
          schemaUrl: scope.scopeSchemaUrl,
          spans: spans.map(row => otlpSpan(traceId, row)),
        }
      }),
    }),
  )
  return create(TracesDataSchema, { resourceSpans })
}

/** Returns the message in protobuf. */
export function traceBytes(trace: TracesData): Uint8Array {
  return toBinary(TracesDataSchema, trace)
}

/** Returns the resources of the message in the JSON of protobuf, in which ids are base64, as Tempo has them. */
export function resourceSpansJson(trace: TracesData): unknown {
  const json = toJson(TracesDataSchema, trace) as { resourceSpans?: unknown }
  return json.resourceSpans ?? []
}

function otlpSpan(traceId: string, row: SpanDetailsRow): MessageInitShape<typeof SpanSchema> {
  return {
    traceId: bytesOf(traceId),
    spanId: bytesOf(row.spanId),
    parentSpanId: /^0*$/.test(row.parentSpanId) ? new Uint8Array() : bytesOf(row.parentSpanId),
    traceState: row.traceState,
    flags: row.flags,
    name: row.name,
    kind: row.kind,
    startTimeUnixNano: BigInt(row.startTimeUnixNano),
    endTimeUnixNano: BigInt(row.endTimeUnixNano),
    status: { code: row.statusCode, message: row.statusMessage },
    attributes: ofColumns(row.attributeColumns),
    droppedAttributesCount: row.droppedAttributesCount,
    events: row.eventColumns.map(([time, name, attributes, droppedAttributesCount]) => ({
      ...{ timeUnixNano: BigInt(time), name, attributes: ofColumns(attributes), droppedAttributesCount },
    })),
    droppedEventsCount: row.droppedEventsCount,
    links: row.linkColumns.map(([ofTrace, ofSpan, traceState, flags, attributes, droppedAttributesCount]) => ({
      ...{ traceId: bytesOf(ofTrace), spanId: bytesOf(ofSpan), traceState, flags },
      ...{ attributes: ofColumns(attributes), droppedAttributesCount },
    })),
    droppedLinksCount: row.droppedLinksCount,
  }
}

function bytesOf(hex: string): Uint8Array {
  return Buffer.from(hex, 'hex')
}

function ofColumns([keys, values, types]: AttributeColumns) {
  return keys.map((key, i) => ({ key, value: typedValue(types[i] ?? 'empty', values[i] ?? '') }))
}

/** Returns attributes that are stored as a JSON object, or as an empty text. */
function ofObject(json: string) {
  const object = json === '' ? {} : (parseJson(json, BigInt) as Record<string, unknown>)
  return Object.entries(object).map(([key, value]) => ({ key, value: plainValue(value) }))
}

function typedValue(type: AttributeType, text: string): Value {
  switch (type) {
    case 'string':
      return { value: { case: 'stringValue', value: text } }
    case 'bool':
      return { value: { case: 'boolValue', value: text === 'true' } }
    case 'int':
      return { value: { case: 'intValue', value: BigInt(text) } }
    case 'double':
      return { value: { case: 'doubleValue', value: Number(text) } }
    case 'bytes':
      return { value: { case: 'bytesValue', value: Buffer.from(text, 'base64') } }
    case 'array':
    case 'kvlist':
      return plainValue(parseJson(text, BigInt))
    case 'empty':
      return {}
  }
}

function plainValue(value: unknown): Value {
  if (typeof value === 'string') return { value: { case: 'stringValue', value } }
  if (typeof value === 'boolean') return { value: { case: 'boolValue', value } }
  if (typeof value === 'bigint') return { value: { case: 'intValue', value } }
  if (typeof value === 'number') return { value: { case: 'doubleValue', value } }
  if (Array.isArray(value)) return { value: { case: 'arrayValue', value: { values: value.map(plainValue) } } }
  if (typeof value !== 'object' || value === null) return {}
  const values = Object.entries(value).map(([key, of]) => ({ key, value: plainValue(of) }))
  return { value: { case: 'kvlistValue', value: { values } } }
}
