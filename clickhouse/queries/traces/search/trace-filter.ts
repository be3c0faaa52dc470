import type { BoundCondition } from '../../../select.ts'
import { type AttributeCondition, attributeConditions } from '../../attributes/attribute-conditions.ts'
import { inBucketsOf } from '../../attributes/buckets-of-traces.ts'

/**
 * Selects traces. One span of a trace must match `serviceName`, `spanName`, `status`, `minDurationNanos` and `attributes`
 * together. An undefined field selects all.
 */
export interface TraceFilter {
  readonly serviceName: string | undefined
  readonly spanName: string | undefined
  /** StatusCode of OTLP. */
  readonly status: number | undefined
  readonly minDurationNanos: bigint | undefined
  readonly attributes: readonly AttributeCondition[]
  /** A session that spans of the trace name. */
  readonly sessionId: string | undefined
  /** Whether a finding occurred in the trace. */
  readonly hasFinding: boolean
  /** Start of the period in which a matching span started, or arrived if that was earlier, Unix ns, inclusive. */
  readonly fromNano: bigint
  /** End of the period, exclusive. */
  readonly toNano: bigint
}

/** Returns the condition on rows of `spans` that match, but for the time. */
export function spanCondition(workspaceId: string, filter: TraceFilter): BoundCondition {
  const { serviceName, spanName, status, minDurationNanos, sessionId, hasFinding } = filter
  const attributes = attributeConditions(filter.attributes)
  const conditions = [
    'workspace_id = {workspaceId: String}',
    ...(serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
    ...(spanName === undefined ? [] : ['name = {spanName: String}']),
    ...(status === undefined ? [] : ['status_code = {status: UInt8}']),
    ...(minDurationNanos === undefined
      ? []
      : [
          'end_time_unix_nano >= start_time_unix_nano',
          'end_time_unix_nano - start_time_unix_nano >= {minDurationNanos: UInt64}',
        ]),
    ...attributes.sql,
    ...(sessionId === undefined ? [] : [inBucketsOf(OF_SESSION_TRACES)]),
    ...(hasFinding ? ['trace_id IN (SELECT trace_id FROM exceptions WHERE workspace_id = {workspaceId: String})'] : []),
  ]
  const bound = {
    workspaceId,
    serviceName,
    spanName,
    status,
    sessionId,
    minDurationNanos: minDurationNanos?.toString(),
  }
  return { sql: conditions.join(' AND '), params: { ...bound, ...attributes.params } }
}

const OF_SESSION_TRACES = `workspace_id = {workspaceId: String} AND trace_id IN (
  SELECT trace_id FROM session_traces WHERE workspace_id = {workspaceId: String} AND session_id = {sessionId: String})`
