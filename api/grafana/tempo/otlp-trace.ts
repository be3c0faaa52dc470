import { create, type MessageInitShape, toBinary, toJsonString } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { AttributeColumns, AttributeType } from '../../../clickhouse/queries/attributes/attribute-columns.ts'
import type { SpanDetailsRow } from '../../../clickhouse/queries/traces/select-span-details.ts'
import type { AnyValueSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import {
  ResourceSpansSchema,
  ScopeSpansSchema,
  SpanSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { parseJson } from '../../http/parse-json.ts'
import type { WholeTrace } from '../../traces/spans/load-all-spans.ts'
import type { TextBytes } from '../text-bytes.ts'

type Value = MessageInitShape<typeof AnyValueSchema>

/** The spans of a resource, by scope. */
interface ResourceGroup {
  readonly first: SpanDetailsRow
  readonly scopes: ReadonlyMap<string, readonly SpanDetailsRow[]>
}

/** Returns the spans of the same resource and scope together. */
function groupsOf({ rows }: WholeTrace): Iterable<ResourceGroup> {
  const resources = new Map<string, { first: SpanDetailsRow; scopes: Map<string, SpanDetailsRow[]> }>()
  for (const row of rows) {
    const { resourceJson, resourceSchemaUrl, resourceDroppedAttributesCount } = row
    const ofResource = JSON.stringify([
      row.serviceName,
      resourceJson,
      resourceSchemaUrl,
      resourceDroppedAttributesCount,
    ])
    const resource = resources.get(ofResource) ?? { first: row, scopes: new Map() }
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
  return resources.values()
}

/** Fields of opentelemetry.proto.trace.v1: TracesData.resource_spans, ResourceSpans.scope_spans and ScopeSpans.spans. */
const FIELDS = { resourceSpans: 1, scopeSpans: 2, spans: 2 } as const

/** Returns a trace as TracesData in protobuf. Its spans become messages one by one, because all of them would take 150 MB. */
export function traceBytes(trace: WholeTrace): Uint8Array {
  const writer = new BinaryWriter()
  const begin = (field: number) => writer.tag(field, WireType.LengthDelimited).fork()
  for (const { first, scopes } of groupsOf(trace)) {
    begin(FIELDS.resourceSpans).raw(toBinary(ResourceSpansSchema, create(ResourceSpansSchema, otlpResource(first))))
    for (const spans of scopes.values()) {
      const scope = create(ScopeSpansSchema, otlpScope(spans[0] as SpanDetailsRow))
      begin(FIELDS.scopeSpans).raw(toBinary(ScopeSpansSchema, scope))
      for (const row of spans) {
        const span = toBinary(SpanSchema, create(SpanSchema, otlpSpan(trace.traceId, row)))
        writer.tag(FIELDS.spans, WireType.LengthDelimited).bytes(span)
      }
      writer.join()
    }
    writer.join()
  }
  return writer.finish()
}

/** Adds the resources of a trace in the JSON of protobuf, in which ids are base64, as Tempo has them. */
export function addResourceSpans(trace: WholeTrace, out: TextBytes): void {
  out.add('[')
  let separator = ''
  for (const { first, scopes } of groupsOf(trace)) {
    const resource = toJsonString(ResourceSpansSchema, create(ResourceSpansSchema, otlpResource(first)))
    out.add(`${separator}${opened(resource)},"scopeSpans":[`)
    addScopes(trace.traceId, scopes, out)
    out.add(']}')
    separator = ','
  }
  out.add(']')
}

function addScopes(traceId: string, scopes: ResourceGroup['scopes'], out: TextBytes): void {
  let separator = ''
  for (const rows of scopes.values()) {
    const scope = toJsonString(ScopeSpansSchema, create(ScopeSpansSchema, otlpScope(rows[0] as SpanDetailsRow)))
    out.add(`${separator}${opened(scope)},"spans":[`)
    for (const [i, row] of rows.entries()) {
      const span = toJsonString(SpanSchema, create(SpanSchema, otlpSpan(traceId, row)))
      out.add(i === 0 ? span : `,${span}`)
    }
    out.add(']}')
    separator = ','
  }
}

/** Returns the JSON of an object with a member, without its end, so that others can follow. */
function opened(json: string): string {
  return json.slice(0, -1)
}

function otlpResource(row: SpanDetailsRow): MessageInitShape<typeof ResourceSpansSchema> {
  return {
    resource: {
      attributes: ofObject(row.resourceJson),
      droppedAttributesCount: row.resourceDroppedAttributesCount,
    },
    schemaUrl: row.resourceSchemaUrl,
  }
}

function otlpScope(row: SpanDetailsRow): MessageInitShape<typeof ScopeSpansSchema> {
  return {
    scope: {
      name: row.scopeName,
      version: row.scopeVersion,
      attributes: ofObject(row.scopeAttributes),
      droppedAttributesCount: row.scopeDroppedAttributesCount,
    },
    schemaUrl: row.scopeSchemaUrl,
  }
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
