import { TIMELINE_TEXT, type TimelineKind } from '../../../../schemas/http/sessions/timeline.ts'
import { inBucketsOf } from '../../attributes/buckets-of-traces.ts'
import { isCounting } from '../../attributes/membership.ts'
import { EXCEPTIONS_OF_SESSION, OF_SESSION } from '../session-key.ts'

/** Columns of every row of a timeline. 64-bit numbers are decimal text; absent texts are empty, and absent ids are zeros. */
export interface TimelineRow {
  /** Unix nanoseconds. */
  readonly at: string
  /** Orders rows of the same time and kind: a hash of 32 hex digits. Rows with the same are equal. */
  readonly tie: string
  /** How often it was received. */
  readonly receivedCount: string
  readonly surfaceId: string
}

interface OfTrace {
  readonly traceId: string
  readonly spanId: string
}

interface OfDevice {
  readonly deviceId: string
  readonly visitorId: string
}

/** The rows of a timeline by their kinds. */
export interface TimelineRows {
  readonly span: TimelineRow &
    OfTrace & {
      readonly parentSpanId: string
      readonly spanName: string
      readonly serviceName: string
      readonly endUnixNano: string
      readonly statusCode: number
    }
  readonly log: TimelineRow &
    OfTrace & {
      readonly serviceName: string
      readonly severityNumber: number
      readonly severityText: string
      readonly eventName: string
      readonly bodyText: string
    }
  readonly finding: TimelineRow &
    OfTrace & {
      /** 16 bytes as hexadecimal digits. */
      readonly variantId: string
      /** The finding as it was known when the row was stored. */
      readonly findingId: string
      readonly serviceName: string
      readonly exceptionType: string
      readonly exceptionMessage: string
    }
  readonly heartbeat: TimelineRow & OfDevice
  readonly identity: TimelineRow &
    OfDevice & {
      readonly identifierText: string
      readonly sourceType: string
      readonly sourceName: string
      readonly userName: string
      readonly userEmail: string
    }
  readonly replay: TimelineRow & {
    readonly chunkId: string
    readonly windowId: string
    readonly segmentId: string
    readonly lastEventMs: string
    readonly eventCount: number
    readonly hasFullSnapshot: boolean
  }
}

/** Where the entries of a kind are stored. */
export interface TimelineSource {
  readonly table: string
  /** Condition on the rows of the session, which leads to few granules of others. */
  readonly ofSession: string
  /** Expression of the time of a row, in Unix nanoseconds: UInt64. */
  readonly at: string
  /** Columns by which rows of the same time are distinguished. */
  readonly distinct: string
  /** Columns of `TimelineRows`. */
  readonly columns: string
}

const cutName = (column: string) => `leftUTF8(${column}, ${TIMELINE_TEXT.name})`
const cutText = (column: string) => `leftUTF8(${column}, ${TIMELINE_TEXT.text})`

const IDS = 'lower(hex(trace_id)) AS traceId, lower(hex(span_id)) AS spanId'
const DEVICE = 'device_id AS deviceId, visitor_id AS visitorId'
const ARRIVAL = 'toUInt64(toUnixTimestamp64Milli(received_at)) * 1000000'
/** The last millisecond of ClickHouse's nanoseconds. */
const LAST_MS = 'toInt64(9223372036854)'
const IN_SESSION = 'workspace_id = {workspaceId: String} AND session_id = {sessionId: String}'
const ON_ITS_DAYS = 'toDate(received_at) >= {firstDay: Date} AND toDate(received_at) <= {lastDay: Date}'

/** Traces of the session with spans between two times. A trace is read by the primary key, and others are not. */
const OPEN_TRACES = `
  SELECT trace_id FROM session_traces WHERE ${OF_SESSION}
  GROUP BY trace_id
  HAVING max(last_end_unix_nano) >= {openSince: UInt64} AND min(first_start_unix_nano) <= {startedUntil: UInt64}`

/**
 * The sources of a timeline by its kinds. Heartbeats, identities and chunks are read by their primary key, spans by the traces of
 * the session. Occurrences are found by the index of their session, and log records by that of the attribute `session.id`, whose
 * value is the id of the session (workers/otlp/logs/log-decoder.ts).
 */
export const TIMELINE_SOURCES: Readonly<Record<TimelineKind, TimelineSource>> = {
  span: {
    table: 'spans',
    ofSession: `${IN_SESSION} AND ${inBucketsOf(`workspace_id = {workspaceId: String} AND trace_id IN (${OPEN_TRACES})`)}`,
    at: 'start_time_unix_nano',
    distinct: 'trace_id, span_id',
    columns: `${IDS}, lower(hex(parent_span_id)) AS parentSpanId, ${cutName('name')} AS spanName,
      ${cutName('service_name')} AS serviceName, end_time_unix_nano AS endUnixNano, status_code AS statusCode`,
  },
  log: {
    table: 'logs',
    ofSession: `${IN_SESSION} AND ${ON_ITS_DAYS}`,
    at: 'toUInt64(greatest(toUnixTimestamp64Nano(timestamp), 0))',
    distinct: `surface_id, service_name, trace_id, span_id, severity_number, severity_text, event_name, body,
      attribute_keys, attribute_values`,
    columns: `${IDS}, ${cutName('service_name')} AS serviceName, severity_number AS severityNumber,
      ${cutName('severity_text')} AS severityText, ${cutName('event_name')} AS eventName, ${cutText('body')} AS bodyText`,
  },
  finding: {
    table: 'exceptions',
    ofSession: `${EXCEPTIONS_OF_SESSION} AND ${ON_ITS_DAYS} AND ${isCounting(EXCEPTIONS_OF_SESSION)}`,
    at: 'occurred_at_unix_nano',
    distinct: 'variant_id, surface_id, trace_id, span_id, type, message',
    columns: `${IDS}, lower(hex(variant_id)) AS variantId, finding_id AS findingId, ${cutName('service_name')} AS serviceName,
      ${cutName('type')} AS exceptionType, ${cutText('message')} AS exceptionMessage`,
  },
  heartbeat: {
    table: 'session_heartbeats',
    ofSession: OF_SESSION,
    at: ARRIVAL,
    distinct: 'surface_id, device_id, visitor_id, fp_hash',
    columns: DEVICE,
  },
  identity: {
    table: 'session_identities',
    ofSession: OF_SESSION,
    at: ARRIVAL,
    distinct: `surface_id, identifier, source_type, source_name, device_id, visitor_id, fp_hash, avatar, email, name,
      country, traits`,
    columns: `${DEVICE}, ${cutText('identifier')} AS identifierText, ${cutName('source_type')} AS sourceType,
      ${cutName('source_name')} AS sourceName, ${cutText('name')} AS userName, email AS userEmail`,
  },
  replay: {
    table: 'replay_chunks',
    ofSession: OF_SESSION,
    at: `toUInt64(greatest(least(first_event_ms, ${LAST_MS}), 0)) * 1000000`,
    distinct: 'object_key',
    columns: `concat('chk_', substring(lower(hex(SHA256(object_key))), 1, 32)) AS chunkId, ${cutName('window_id')} AS windowId,
      ${cutName('segment_id')} AS segmentId, last_event_ms AS lastEventMs, event_count AS eventCount,
      has_full_snapshot AS hasFullSnapshot`,
  },
}
