import type { BoundCondition } from '../../../select.ts'
import { type AttributeValue, attributeCondition } from '../../attributes/attribute-condition.ts'

/**
 * Selects traces. One span of a trace must match `serviceName`, `spanName`, `status`, `minDurationNanos` and `attribute`
 * together. An undefined field selects all.
 */
export interface TraceFilter {
  readonly serviceName: string | undefined
  readonly spanName: string | undefined
  /** StatusCode of OTLP. */
  readonly status: number | undefined
  readonly minDurationNanos: bigint | undefined
  readonly attribute: AttributeValue | undefined
  /** A session that spans of the trace name. */
  readonly sessionId: string | undefined
  /** Whether a finding occurred in the trace. */
  readonly hasFinding: boolean
  /** Start of the period in which the newest span of the service started, Unix ns, inclusive. */
  readonly fromNano: bigint
  /** End of the period, exclusive. */
  readonly toNano: bigint
}

const STATUS_ERROR = 2

/** Returns the condition that a span matches, or undefined if each does. */
export function spanCondition(filter: TraceFilter): BoundCondition | undefined {
  const attribute = filter.attribute === undefined ? undefined : attributeCondition('attribute', filter.attribute)
  const conditions = [
    ...(filter.serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
    ...(filter.spanName === undefined ? [] : ['name = {spanName: String}']),
    ...(filter.status === undefined ? [] : ['status_code = {status: UInt8}']),
    ...(filter.minDurationNanos === undefined
      ? []
      : [
          'end_time_unix_nano >= start_time_unix_nano',
          'end_time_unix_nano - start_time_unix_nano >= {minDurationNanos: UInt64}',
        ]),
    ...(attribute === undefined ? [] : [attribute.sql]),
  ]
  if (conditions.length === 0) return undefined
  return { sql: conditions.join(' AND '), params: { ...paramsOf(filter), ...attribute?.params } }
}

/** Returns the condition on rows of `trace_services`, which every trace that matches meets. */
export function candidateCondition(filter: TraceFilter): BoundCondition {
  const conditions = [
    'workspace_id = {workspaceId: String}',
    'last_start_unix_nano < {toNano: UInt64}',
    ...(filter.serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
    ...(filter.spanName === undefined
      ? []
      : ['bitAnd(names, bitShiftLeft(toUInt64(1), cityHash64({spanName: String}) % 64)) != 0']),
    ...(filter.status === STATUS_ERROR ? ['has_error'] : []),
    ...(filter.minDurationNanos === undefined ? [] : ['longest_nanos >= {minDurationNanos: UInt64}']),
    ...(filter.sessionId === undefined
      ? []
      : [inTraces('session_traces WHERE workspace_id = {workspaceId: String} AND session_id = {sessionId: String}')]),
    ...(filter.hasFinding ? [inTraces('finding_traces WHERE workspace_id = {workspaceId: String}')] : []),
  ]
  const params = { ...paramsOf(filter), toNano: String(filter.toNano), sessionId: filter.sessionId }
  return { sql: conditions.join(' AND '), params }
}

/** Condition that a trace is one of `traceIds`, a parameter of hex texts. */
export const IN_TRACE_IDS = 'trace_id IN (SELECT toFixedString(unhex(arrayJoin({traceIds: Array(String)})), 16))'

function inTraces(source: string): string {
  return `trace_id IN (SELECT trace_id FROM ${source})`
}

function paramsOf({ serviceName, spanName, status, minDurationNanos }: TraceFilter): BoundCondition['params'] {
  return { serviceName, spanName, status, minDurationNanos: minDurationNanos?.toString() }
}
