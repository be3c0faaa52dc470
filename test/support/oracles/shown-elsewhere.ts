import { create } from '@bufbuild/protobuf'
import {
  type AnyValue,
  AnyValueSchema,
  type KeyValue,
  KeyValueSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import {
  ResourceSpansSchema,
  type TracesData,
  TracesDataSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { hex, textOf } from './otlp-oracle.ts'
import {
  KINDS,
  kindOf,
  type SentSpan,
  serviceOf,
  shownAttributes,
  shownObject,
  statusOf,
  textsAround,
} from './shown-span.ts'

/** A trace with each span alone in its resource and scope, in the order of span ids, so that grouping does not matter. */
export function ungrouped({ resourceSpans }: TracesData): TracesData {
  const alone = resourceSpans.flatMap(({ resource, schemaUrl, scopeSpans }) =>
    scopeSpans.flatMap(({ spans, scope, schemaUrl: ofScope }) =>
      spans.map(span => ({
        spanId: hex(span.spanId),
        message: create(ResourceSpansSchema, {
          ...{ resource, schemaUrl },
          scopeSpans: [{ ...(scope && { scope }), schemaUrl: ofScope, spans: [span] }],
        } as never),
      })),
    ),
  )
  alone.sort((a, b) => (a.spanId < b.spanId ? -1 : 1))
  return create(TracesDataSchema, { resourceSpans: alone.map(({ message }) => message) })
}

/** A span as Tempo's interface must return it: what was sent, but for the mapping of docs/api/other-tools.md#tempo. */
export function tempoSpan(sent: SentSpan) {
  const { span, scope, resource } = sent
  const { name, version, scopeSchemaUrl, resourceSchemaUrl } = textsAround(sent)
  // Without its name, the library makes a message of what is given.
  const keep = <T extends { attributes: KeyValue[]; $typeName: string }>({ $typeName: _, ...of }: T) => ({
    ...of,
    attributes: of.attributes.map(exactTop),
  })
  return {
    resource: {
      attributes: asObject(resource.resource?.attributes ?? []),
      droppedAttributesCount: resource.resource?.droppedAttributesCount ?? 0,
    },
    schemaUrl: resourceSchemaUrl,
    scopeSpans: [
      {
        scope: {
          ...{ name, version },
          attributes: asObject(scope.scope?.attributes ?? []),
          droppedAttributesCount: scope.scope?.droppedAttributesCount ?? 0,
        },
        schemaUrl: scopeSchemaUrl,
        spans: [
          {
            ...keep(span),
            kind: kindOf(sent),
            status: { code: statusOf(sent), message: span.status?.message ?? '' },
            events: span.events.map(keep),
            links: span.links.map(keep),
          },
        ],
      },
    ],
  }
}

/** Values are exact, but for those within lists and maps. */
function exactTop({ key, value }: KeyValue): KeyValue {
  const isPlain = value?.value.case !== 'arrayValue' && value?.value.case !== 'kvlistValue'
  return keyValue(key, isPlain ? (value ?? create(AnyValueSchema)) : nested(value))
}

/** Within lists, maps, resources and scopes, bytes are base64 and numbers that are not finite are text. */
function nested(any: AnyValue | undefined): AnyValue {
  const member = any?.value
  switch (member?.case) {
    case 'bytesValue':
      return stringValue(textOf(any))
    case 'doubleValue':
      return Number.isFinite(member.value) && any ? any : stringValue(String(member.value))
    case 'arrayValue':
      return create(AnyValueSchema, {
        value: { case: 'arrayValue', value: { values: member.value.values.map(nested) } },
      })
    case 'kvlistValue': {
      const last = Object.fromEntries(member.value.values.map(({ key, value }) => [key, nested(value)]))
      const values = Object.entries(last).map(([key, value]) => keyValue(key, value))
      return create(AnyValueSchema, { value: { case: 'kvlistValue', value: { values } } })
    }
    default:
      return any ?? create(AnyValueSchema)
  }
}

function asObject(attributes: readonly KeyValue[]): KeyValue[] {
  const last = new Map(attributes.map(({ key, value }) => [key, nested(value)]))
  const sorted = Object.fromEntries([...last].sort(([a], [b]) => (a < b ? -1 : 1)))
  return Object.entries(sorted).map(([key, value]) => keyValue(key, value))
}

const keyValue = (key: string, value: AnyValue) => create(KeyValueSchema, { key, value })
const stringValue = (value: string) => create(AnyValueSchema, { value: { case: 'stringValue', value } })

const JAEGER_TYPES = { bool: 'bool', int: 'int64', double: 'float64', bytes: 'binary' } as const

function jaegerTags(attributes: readonly KeyValue[]) {
  return shownAttributes(attributes).map(({ key, type, value }) => {
    const jaegerType = type in JAEGER_TYPES ? JAEGER_TYPES[type as keyof typeof JAEGER_TYPES] : 'string'
    const number = Number(value)
    const isNumber = (type === 'int' && Number.isSafeInteger(number)) || (type === 'double' && Number.isFinite(number))
    return { key, type: jaegerType, value: type === 'bool' ? value === 'true' : isNumber ? number : value }
  })
}

/** A span as Jaeger's interface must return it (docs/api/other-tools.md#jaeger), with the tags of its process. */
export function jaegerSpan(sent: SentSpan) {
  const { span, resource } = sent
  const { name, version } = textsAround(sent)
  const traceID = hex(span.traceId)
  const text = (key: string, value: string | undefined) => (value ? [{ key, type: 'string', value }] : [])
  return {
    ...{ traceID, spanID: hex(span.spanId), flags: span.flags % 256, operationName: span.name },
    references: [
      ...(span.parentSpanId.length === 0 ? [] : [{ refType: 'CHILD_OF', traceID, spanID: hex(span.parentSpanId) }]),
      ...span.links.map(link => ({ refType: 'FOLLOWS_FROM', traceID: hex(link.traceId), spanID: hex(link.spanId) })),
    ],
    startTime: Number(span.startTimeUnixNano / 1_000n),
    duration: Math.max(0, Number((span.endTimeUnixNano - span.startTimeUnixNano) / 1_000n)),
    tags: [
      ...jaegerTags(span.attributes),
      ...text('span.kind', kindOf(sent) === 0 ? '' : KINDS[kindOf(sent)]?.toLowerCase()),
      ...text('otel.status_code', ['', 'OK', 'ERROR'][statusOf(sent)]),
      ...(statusOf(sent) === 2 ? [{ key: 'error', type: 'bool', value: true }] : []),
      ...text('otel.status_description', span.status?.message),
      ...text('otel.scope.name', name),
      ...text('otel.scope.version', version),
      ...text('w3c.tracestate', span.traceState),
    ],
    logs: span.events.map(({ timeUnixNano, name, attributes }) => ({
      timestamp: Number(timeUnixNano / 1_000n),
      fields: [{ key: 'event', type: 'string', value: name }, ...jaegerTags(attributes)],
    })),
    warnings: null,
    process: { serviceName: serviceOf(sent), tags: processTags(resource.resource?.attributes ?? []) },
  }
}

/** What is neither number nor bool is text, and JSON if it is a list, a map or empty. */
function processTags(attributes: readonly KeyValue[]) {
  const last = new Map(jaegerTags(attributes).map(tag => [tag.key, tag]))
  return Object.entries(shownObject(attributes))
    .filter(([key]) => key !== 'service.name')
    .map(([key, value]) => {
      const tag = last.get(key)
      if (typeof value === 'boolean' || typeof value === 'number' || tag?.type === 'int64') return tag
      return { key, type: 'string', value: typeof value === 'string' ? value : JSON.stringify(value) }
    })
}
