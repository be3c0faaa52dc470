import type { ExportTraceServiceRequest } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { AnyValue, KeyValue } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import type { Span, Span_Event } from '../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { identify } from '../../../shared/grouping/fingerprint.ts'
import { placesOf, titleOfFailure } from '../../../workers/exceptions/places.ts'
import { PLACE_ATTRIBUTES } from '../../../workers/otlp/protobuf/place-attributes.ts'
import type { PayloadSource, RejectedRows, RowRejection } from '../../../workers/otlp/protobuf/refusal.ts'
import type { NativeValue } from './read-block.ts'

/** Expected values of a row by column. */
export type Row = Record<string, NativeValue>

/** Expected rows by table. */
interface ExpectedTables {
  spans: Row[]
  exceptions: Row[]
  failures: Row[]
  rejected: RejectedRows
}

/** Computes the rows of a payload from the decoded message with plain objects, in the terms of `readBlock`. */
export function expectedTables(origin: PayloadSource, request: ExportTraceServiceRequest): ExpectedTables {
  const result: ExpectedTables = { spans: [], exceptions: [], failures: [], rejected: {} }
  for (const { resource, scopeSpans, schemaUrl } of request.resourceSpans) {
    const resourceAttributes = resource?.attributes ?? []
    for (const { scope, spans, schemaUrl: scopeSchemaUrl } of scopeSpans) {
      const shared = {
        workspace_id: origin.workspaceId,
        surface_id: origin.surfaceId,
        received_at: BigInt(origin.receivedAtMs),
        service_name: latin1(cut(promotedText(resourceAttributes, 'service.name'), 1_024)),
        service_version: latin1(cut(promotedText(resourceAttributes, 'service.version'), 256)),
        resource: latin1(canonicalJson(resourceAttributes)),
        resource_dropped_attributes_count: resource?.droppedAttributesCount ?? 0,
        resource_schema_url: latin1(cut(schemaUrl, 2_048)),
        scope_name: latin1(cut(scope?.name ?? '', 1_024)),
        scope_version: latin1(cut(scope?.version ?? '', 1_024)),
        scope_attributes: latin1(canonicalJson(scope?.attributes ?? [])),
        scope_schema_url: latin1(cut(scopeSchemaUrl, 2_048)),
        scope_dropped_attributes_count: scope?.droppedAttributesCount ?? 0,
      }
      for (const span of spans) {
        const rejection = rejectionOf(span)
        if (rejection !== undefined) noteRejection(result.rejected, rejection, result.spans.length)
        else {
          result.spans.push({ ...shared, ...spanRow(span, resourceAttributes) })
          noteSession(result.rejected, span.attributes, resourceAttributes)
          for (const row of exceptionRows(span, shared, origin, resourceAttributes)) {
            result[row.source === 3 ? 'failures' : 'exceptions'].push(row)
          }
        }
      }
    }
  }
  return result
}

/** Notes a record that is left out after `stored` records of the payload that are not. */
export function noteRejection(rejected: RejectedRows, reason: RowRejection, stored: number): void {
  const index = Object.values(rejected).reduce((sum, { indexes }) => sum + indexes.length, stored)
  rejected[reason] ??= { count: 0, indexes: [] }
  rejected[reason].count++
  rejected[reason].indexes.push(index)
}

/** Counts a stored record whose session id is too long. It is not a record that is left out, so it has no index. */
export function noteSession(rejected: RejectedRows, attributes: KeyValue[], resourceAttributes: KeyValue[]): void {
  if (sessionIdOf(attributes, resourceAttributes) === namedSession(attributes, resourceAttributes)) return
  rejected.session_id_too_long ??= { count: 0, indexes: [] }
  rejected.session_id_too_long.count++
}

function rejectionOf(span: Span) {
  if (span.traceId.length !== 16 || isZero(span.traceId)) return 'invalid_trace_id'
  if (span.spanId.length !== 8 || isZero(span.spanId)) return 'invalid_span_id'
  if (span.parentSpanId.length !== 0 && span.parentSpanId.length !== 8) return 'invalid_parent_span_id'
  return undefined
}

function spanRow(span: Span, resourceAttributes: KeyValue[]): Row {
  return {
    trace_id: hex(span.traceId),
    span_id: hex(span.spanId),
    parent_span_id: hex(span.parentSpanId).padStart(16, '0'),
    trace_state: latin1(span.traceState),
    flags: span.flags,
    name: latin1(span.name),
    kind: span.kind >= 0 && span.kind <= 5 ? span.kind : 0,
    start_time_unix_nano: span.startTimeUnixNano,
    end_time_unix_nano: span.endTimeUnixNano,
    status_code: statusCode(span),
    status_message: latin1(span.status?.message ?? ''),
    ...attributeColumns(span.attributes),
    dropped_attributes_count: span.droppedAttributesCount,
    events: span.events.map(event => ({
      time_unix_nano: event.timeUnixNano,
      name: latin1(event.name),
      ...attributeColumns(event.attributes),
      dropped_attributes_count: event.droppedAttributesCount,
    })),
    dropped_events_count: span.droppedEventsCount,
    links: span.links.map(link => ({
      trace_id: Buffer.from(link.traceId).toString('latin1'),
      span_id: Buffer.from(link.spanId).toString('latin1'),
      trace_state: latin1(link.traceState),
      flags: link.flags,
      ...attributeColumns(link.attributes),
      dropped_attributes_count: link.droppedAttributesCount,
    })),
    dropped_links_count: span.droppedLinksCount,
    session_id: latin1(sessionIdOf(span.attributes, resourceAttributes)),
    http_route: latin1(cut(promotedText(span.attributes, 'http.route'), 1_024)),
    http_status_code:
      httpStatus(span.attributes, 'http.response.status_code') || httpStatus(span.attributes, 'http.status_code') || 0,
    peer: latin1(peerOf(span)),
  }
}

/** Returns what a client, producer or consumer talks to. */
function peerOf({ kind, attributes }: Span): string {
  if (kind < 3 || kind > 5) return ''
  const first = (...names: readonly string[]) => {
    const texts = names.map(name => {
      const value = attributes.findLast(({ key }) => key === name)?.value?.value
      const text = value?.case === 'stringValue' && !value.value.includes('\0') ? value.value : ''
      return Buffer.from(text).subarray(0, 512).toString()
    })
    return texts.find(text => text !== '') ?? ''
  }
  const host = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)/i.exec(first('url.full', 'http.url'))?.[1]
  const address =
    first('service.peer.name', 'peer.service', 'server.address', 'net.peer.name', 'http.host') ||
    host ||
    first('rpc.service')
  const database = first('db.system.name', 'db.system')
  const messaging = first('messaging.system')
  const rpc = first('rpc.system.name', 'rpc.system')
  const text = (...lines: readonly [string, string, string]) =>
    lines.map(line => cut(line.replaceAll('\n', ' '), 256)).join('\n')
  if (database) return text('database', database, first('db.namespace', 'db.name') || address)
  if (messaging)
    return text('queue', messaging, first('messaging.destination.name', 'messaging.destination') || address)
  return rpc || address ? text('request', rpc, address) : ''
}

function exceptionRows(span: Span, shared: Row, origin: PayloadSource, resourceAttributes: KeyValue[]): Row[] {
  const events = span.events.filter(event => event.name === 'exception')
  const found =
    events.length > 0
      ? events.map(ofEvent)
      : statusCode(span) === 2
        ? [
            {
              source: 3,
              type: titleOfFailure(cut(span.name, 1024), placeTexts(span.attributes, 'record')),
              message: cut(span.status?.message ?? '', 8192),
              stacktrace: '',
              fingerprint: '',
              escaped: false,
              occurredAt: span.endTimeUnixNano,
            },
          ]
        : []
  return found.map(({ source, type, message, stacktrace, fingerprint, escaped, occurredAt }) => ({
    workspace_id: shared.workspace_id as string,
    surface_id: shared.surface_id as string,
    received_at: shared.received_at as bigint,
    ...identityColumns(origin, resourceAttributes, { type, message, stacktrace, fingerprint }),
    trace_id: hex(span.traceId),
    span_id: hex(span.spanId),
    parent_span_id: hex(span.parentSpanId).padStart(16, '0'),
    occurred_at_unix_nano: occurredAt,
    service_name: shared.service_name as string,
    service_version: shared.service_version as string,
    session_id: latin1(sessionIdOf(span.attributes, resourceAttributes)),
    source,
    fingerprint: latin1(fingerprint),
    type: latin1(type),
    message: latin1(message),
    stacktrace: latin1(stacktrace),
    span_name: latin1(cut(span.name, 1024)),
    escaped,
    debug_ids: [], // random values contain no UUIDs
    ...placeColumns(span.attributes, resourceAttributes),
  }))
}

/** Returns the columns of what an exception belongs to. */
export function identityColumns(
  { workspaceId, surfaceId }: PayloadSource,
  resourceAttributes: KeyValue[],
  exception: Record<'type' | 'message' | 'stacktrace' | 'fingerprint', string>,
): Row {
  const serviceName = cut(promotedText(resourceAttributes, 'service.name'), 1_024)
  const serviceVersion = cut(promotedText(resourceAttributes, 'service.version'), 256)
  const identity = identify({ workspaceId, surfaceId, serviceName, serviceVersion, ...exception })
  const { id, variantId, topFrame } = identity
  return { variant_id: hex(variantId), finding_id: hex(Buffer.from(id)), rank: 0n, top_frame: latin1(topFrame) }
}

/** Returns the columns of where an exception occurred. */
export function placeColumns(attributes: KeyValue[], resourceAttributes: KeyValue[]): Row {
  const places = placesOf(placeTexts(attributes, 'record'), placeTexts(resourceAttributes, 'resource'))
  return Object.fromEntries(Object.entries(places).map(([name, text]) => [name, latin1(text)]))
}

/** Returns the texts of the attributes that state a place. A zero byte in one of a record empties it. */
function placeTexts(attributes: KeyValue[], of: 'record' | 'resource'): Map<string, string> {
  const textIn = (value: AnyValue | undefined) => {
    if (value?.value.case === 'arrayValue') return Buffer.byteLength(textOf(value)) <= 512 ? textOf(value) : ''
    if (value?.value.case !== 'stringValue' && value?.value.case !== 'intValue') return ''
    const text = textOf(value)
    return of === 'record' && text.includes('\0') ? '' : cut(text, 512)
  }
  const known = attributes.filter(({ key }) => PLACE_ATTRIBUTES.has(key))
  return new Map(known.map(({ key, value }) => [key, textIn(value)]))
}

function ofEvent({ attributes, timeUnixNano }: Span_Event) {
  return {
    source: 1,
    type: cut(lastText(attributes, 'exception.type'), 1024),
    message: cut(lastText(attributes, 'exception.message'), 8192),
    stacktrace: cut(lastText(attributes, 'exception.stacktrace'), 32_768),
    fingerprint: cut(lastText(attributes, 'exception.fingerprint'), 1024),
    escaped: lastText(attributes, 'exception.escaped') === 'true',
    occurredAt: timeUnixNano,
  }
}

/** Returns the columns of a list of attributes. */
export function attributeColumns(attributes: KeyValue[]): Row {
  return {
    attributes: attributes.map(({ key, value }): [NativeValue, NativeValue] => [latin1(key), latin1(textOf(value))]),
    attribute_types: attributes.map(({ value }) => typeOf(value)),
  }
}

const TYPES = ['stringValue', 'boolValue', 'intValue', 'doubleValue', 'arrayValue', 'kvlistValue', 'bytesValue']

/** Returns the type number of a value. */
export function typeOf(value: AnyValue | undefined): number {
  return TYPES.indexOf(value?.value.case ?? '') + 1
}

/** Returns a value as text. */
export function textOf(any: AnyValue | undefined): string {
  const member = any?.value
  switch (member?.case) {
    case undefined:
      return ''
    case 'stringValue':
      return member.value
    case 'doubleValue':
      return Object.is(member.value, -0) ? '-0' : String(member.value)
    case 'bytesValue':
      return Buffer.from(member.value).toString('base64')
    case 'boolValue':
    case 'intValue':
      return String(member.value)
    case 'arrayValue':
    case 'kvlistValue':
      return jsonOf(any)
  }
}

function jsonOf(any: AnyValue | undefined): string {
  const member = any?.value
  switch (member?.case) {
    case undefined:
      return 'null'
    case 'stringValue':
      return JSON.stringify(wellFormed(member.value))
    case 'bytesValue':
      return JSON.stringify(Buffer.from(member.value).toString('base64'))
    case 'doubleValue':
      if (!Number.isFinite(member.value)) return JSON.stringify(String(member.value))
      return /^-?\d+$/.test(textOf(any)) ? `${textOf(any)}.0` : textOf(any)
    case 'arrayValue':
      return `[${member.value.values.map(jsonOf).join(',')}]`
    case 'kvlistValue':
      return `{${member.value.values.map(({ key, value }) => `${JSON.stringify(wellFormed(key))}:${jsonOf(value)}`).join(',')}}`
    case 'boolValue':
    case 'intValue':
      return String(member.value)
  }
}

/** Returns attributes as JSON with sorted keys. */
export function canonicalJson(attributes: KeyValue[]): string {
  const last = new Map(attributes.map(({ key, value }) => [wellFormed(key), jsonOf(value)]))
  const pairs = [...last].sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${pairs.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(',')}}`
}

/** Returns the text of the last attribute of this name, whatever its type. */
export function lastText(attributes: KeyValue[], name: string): string {
  return wellFormed(textOf(attributes.findLast(({ key }) => key === name)?.value))
}

/** Returns the text of an attribute that has its own column. */
export function promotedText(attributes: KeyValue[], name: string): string {
  const value = attributes.findLast(({ key }) => key === name)?.value
  return value?.value.case === 'stringValue' || value?.value.case === 'intValue' ? textOf(value) : ''
}

/** Returns the session id of a record or its resource, or an empty text if it is too long. */
export function sessionIdOf(attributes: KeyValue[], resourceAttributes: KeyValue[]): string {
  const text = namedSession(attributes, resourceAttributes)
  return [...text].length > 1_024 ? '' : text
}

function namedSession(attributes: KeyValue[], resourceAttributes: KeyValue[]): string {
  return promotedText(attributes, 'session.id') || promotedText(resourceAttributes, 'session.id')
}

/** Returns the value of the column, or undefined if the attribute is not a status. */
function httpStatus(attributes: KeyValue[], name: string): number | undefined {
  const text = promotedText(attributes, name)
  if (!/^\d{1,5}$/.test(text) || Number(text) > 32_767) return undefined
  return Number(text) === 0 ? 65_535 : Number(text)
}

function statusCode(span: Span): number {
  const code = span.status?.code ?? 0
  return code >= 0 && code <= 2 ? code : 0
}

/** Cuts a text after the last whole character that fits. */
export function cut(text: string, limitBytes: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= limitBytes) return wellFormed(text)
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, limitBytes), { stream: true })
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every(byte => byte === 0)
}

/** Returns bytes in hex. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** Returns a text in which lone surrogates are replaced. */
function wellFormed(text: string): string {
  return text.toWellFormed()
}

/** Returns a text as `readBlock` shows a String, with one character per byte of its UTF-8. */
export function latin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}
