import type { MessageShape } from '@bufbuild/protobuf'
import type { AnyValue, KeyValue } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import type {
  ResourceSpansSchema,
  ScopeSpansSchema,
  SpanSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { cut, hex, promotedText, sessionIdOf, textOf, typeOf } from './otlp-oracle.ts'

/** A span as it was sent, with the resource and the scope around it. */
export interface SentSpan {
  readonly span: MessageShape<typeof SpanSchema>
  readonly scope: MessageShape<typeof ScopeSpansSchema>
  readonly resource: MessageShape<typeof ResourceSpansSchema>
}

const TYPES = ['empty', 'string', 'bool', 'int', 'double', 'array', 'kvlist', 'bytes'] as const
export const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const
const STATUSES = ['UNSET', 'OK', 'ERROR'] as const

/** Numbers that OTLP does not define are shown as the first. */
export const kindOf = ({ span }: SentSpan) => (span.kind in KINDS ? span.kind : 0)
export const statusOf = ({ span }: SentSpan) => ((span.status?.code ?? 0) in STATUSES ? (span.status?.code ?? 0) : 0)
export const serviceOf = ({ resource }: SentSpan) =>
  cut(promotedText(resource.resource?.attributes ?? [], 'service.name'), 1_024)

/** Attributes of spans, events and links: exact texts with types (docs/api/traces.md#span-details). */
export function shownAttributes(attributes: readonly KeyValue[]) {
  return attributes.map(({ key, value }) => ({ key, type: TYPES[typeOf(value)] ?? 'empty', value: textOf(value) }))
}

/** Attributes of resources and scopes are one object: of equal keys the last, sorted; integers that JSON lacks are text. */
export function shownObject(attributes: readonly KeyValue[]): object {
  const last = new Map(attributes.map(({ key, value }) => [key, plain(value)]))
  return Object.fromEntries([...last].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function plain(any: AnyValue | undefined): unknown {
  const member = any?.value
  switch (member?.case) {
    case 'intValue':
      return Number.isSafeInteger(Number(member.value)) ? Number(member.value) : String(member.value)
    case 'doubleValue':
      return Number.isFinite(member.value) ? member.value : String(member.value)
    case 'bytesValue':
      return textOf(any)
    case 'arrayValue':
      return member.value.values.map(plain)
    case 'kvlistValue':
      return Object.fromEntries(member.value.values.map(({ key, value }) => [key, plain(value)]))
    default:
      return member?.value ?? null
  }
}

/** Texts around spans, which have limits (docs/api/otlp.md#text-lengths). */
export function textsAround({ scope, resource }: Pick<SentSpan, 'scope' | 'resource'>) {
  return {
    name: cut(scope.scope?.name ?? '', 1_024),
    version: cut(scope.scope?.version ?? '', 1_024),
    scopeSchemaUrl: cut(scope.schemaUrl, 2_048),
    resourceSchemaUrl: cut(resource.schemaUrl, 2_048),
  }
}

/** The fields that the trace of a finding and the details of a span have in common. */
export function shownColumns(sent: SentSpan) {
  const { span, resource } = sent
  const [start, end] = [span.startTimeUnixNano, span.endTimeUnixNano]
  const session = sessionIdOf(span.attributes, resource.resource?.attributes ?? [])
  const route = cut(promotedText(span.attributes, 'http.route'), 1_024)
  const status = httpStatus(sent)
  return {
    spanId: hex(span.spanId),
    ...(span.parentSpanId.length > 0 && { parentSpanId: hex(span.parentSpanId) }),
    name: span.name,
    kind: KINDS[kindOf(sent)],
    serviceName: serviceOf(sent),
    startTimeUnixNano: String(start),
    endTimeUnixNano: String(end),
    durationMs: Math.max(0, Number(end - start)) / 1e6,
    statusCode: STATUSES[statusOf(sent)],
    ...(span.status?.message && { statusMessage: span.status.message }),
    ...(session !== '' && { sessionId: session }),
    ...(route !== '' && { httpRoute: route }),
    ...(status !== undefined && { httpStatusCode: status }),
    occurrenceCount: 1,
    timestamp: `${new Date(Number(start / 1_000_000_000n) * 1_000).toISOString().slice(0, 19)}.${String(start % 1_000_000_000n).padStart(9, '0')}Z`,
  }
}

function httpStatus({ span }: SentSpan): number | undefined {
  return ['http.response.status_code', 'http.status_code']
    .map(name => promotedText(span.attributes, name))
    .filter(text => /^\d{1,5}$/.test(text) && Number(text) <= 32_767)
    .map(Number)[0]
}

/** Everything that the details of a span show of what was sent. */
export function shownDetails(sent: SentSpan) {
  const { span, scope, resource } = sent
  const { name: scopeName, version, scopeSchemaUrl, resourceSchemaUrl } = textsAround(sent)
  return {
    ...shownColumns(sent),
    traceState: span.traceState,
    flags: span.flags,
    attributes: shownAttributes(span.attributes),
    droppedAttributesCount: span.droppedAttributesCount,
    events: span.events.map(({ timeUnixNano, name, attributes, droppedAttributesCount }) => ({
      ...{ timeUnixNano: String(timeUnixNano), name, attributes: shownAttributes(attributes), droppedAttributesCount },
    })),
    droppedEventsCount: span.droppedEventsCount,
    links: span.links.map(({ traceId, spanId, traceState, flags, attributes, droppedAttributesCount }) => ({
      ...{ traceId: hex(traceId), spanId: hex(spanId), traceState, flags },
      ...{ attributes: shownAttributes(attributes), droppedAttributesCount },
    })),
    droppedLinksCount: span.droppedLinksCount,
    resource: {
      attributes: shownObject(resource.resource?.attributes ?? []),
      droppedAttributesCount: resource.resource?.droppedAttributesCount ?? 0,
      schemaUrl: resourceSchemaUrl,
    },
    scope: {
      name: scopeName,
      version,
      attributes: shownObject(scope.scope?.attributes ?? []),
      droppedAttributesCount: scope.scope?.droppedAttributesCount ?? 0,
      schemaUrl: scopeSchemaUrl,
    },
  }
}
