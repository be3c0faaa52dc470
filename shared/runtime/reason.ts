import type { ProblemCode } from '../../schemas/http/problems.ts'

/**
 * Every label of a request that is not stored. Labels are values of metrics and keys of `ingest_log.dead_lettered`, so this
 * type bounds their number.
 */
export type RefusalLabel =
  // The body could not be decompressed.
  | 'bad_compression'
  | 'too_large_decompressed'
  // OTLP protobuf: `workers/otlp/protobuf/refusal.ts` describes them.
  | 'truncated'
  | 'overlong_varint'
  | 'invalid_tag'
  | 'too_many_pieces'
  | 'no_records'
  | 'rows_too_large'
  // OTLP JSON: `workers/otlp/json/json-refusals.ts` describes them.
  | 'invalid_json'
  | 'invalid_json_value'
  | 'nesting_too_deep'
  // Replay chunks.
  | 'not_json_lines'
  | 'no_events'
  | 'too_many_events'
  | 'too_many_values'
  | 'too_many_blanks'
  | 'line_too_long'
  | 'replay_conflict'
  // Source maps, completions and symbolication.
  | 'claim_replaced'
  | 'forgotten'
  | 'invalid_request'
  // A store refused the content, or the decoder failed on it.
  | 'refused_by_clickhouse'
  | 'refused_by_object_store'
  | 'decoder_fault'
  // The job of the request was taken again and again by workers that ended without storing it, and was not decoded. Or threads
  // ended again and again while they read the replay chunk, or did not answer.
  | 'killed_worker'
  // An operator has decided so (`penstock queues to-dead-letters`), and given the detail.
  | 'set_aside'
  // Some records break a rule. If all of them do, the request is a dead letter; else the others are stored.
  | 'records_rejected'
  // The client of an upload or a completion was sent this problem.
  | ProblemCode

/** Every label of a record that is left out of a stored request. `workers/otlp/protobuf/refusal.ts` describes them. */
export type RejectionLabel =
  | 'invalid_trace_id'
  | 'invalid_span_id'
  | 'invalid_parent_span_id'
  | 'invalid_bucket_counts'
  | 'invalid_json_value'
  | 'json_value_left_out'
  | 'exceptions_over_limit'
  | 'findings_over_limit'
  | 'session_id_too_long'
  // The last line of a replay chunk ends within its event.
  | 'truncated_line'
  // A field of an identity or heartbeat that breaks its rule. The receipt names it.
  | 'field_left_out'
  // A build report, a part or a map of a release that was not registered when it arrived.
  | 'unknown_release'
  // A request that its page has sent before: nothing of it is stored.
  | 'repeated_request'

/** Counts the dead letters of exceptions whose spans or log records are stored. */
export const EXCEPTIONS_NOT_STORED = 'exceptions_not_stored'

/**
 * Labels of what is only counted. A dead letter would add nothing: the record is stored with all its attributes, or no sender or
 * reader can complete it.
 */
export const ONLY_COUNTED: ReadonlySet<RejectionLabel> = new Set<RejectionLabel>([
  'session_id_too_long',
  'truncated_line',
  'field_left_out',
  'unknown_release',
  'repeated_request',
])

/** In receipts, names records that a rule of the workspace dropped: `dropped: ` and the name of the rule. */
export const DROPPED = 'dropped'

/** Records of one request that are left out for one reason. */
export interface Rejection {
  count: number
  /** Positions of the first of them in the request, counted over all its resources and scopes. */
  readonly indexes: number[]
  /** Texts that the receipt has about them, one for each. */
  readonly details?: readonly string[]
}

/** Records that are left out of a stored request, by label. */
export type RejectedByReason = Partial<Record<RejectionLabel, Rejection>>

/** Why a request is not stored. */
export interface Reason {
  readonly label: RefusalLabel
  readonly detail?: string | undefined
}

/** Characters of a stored reason. */
const TEXT_LIMIT = 1_000

/** Returns the stored form of a reason: the label, or `label: detail` cut to 1,000 characters. */
export function reasonText({ label, detail }: Reason): string {
  return detail === undefined ? label : `${label}: ${detail}`.slice(0, TEXT_LIMIT)
}

/** Reads the label of a stored reason. It is a plain string, since another version may have stored it. */
export function labelOf(text: string): string {
  const end = text.indexOf(':')
  return end < 0 ? text : text.slice(0, end)
}

/** Reads the detail of a stored reason; empty if there is none. */
export function detailOf(text: string): string {
  const end = text.indexOf(': ')
  return end < 0 ? '' : text.slice(end + 2)
}
