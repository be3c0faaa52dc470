import type { Rejection } from '../../../shared/runtime/reason.ts'
import type { SelectedFrame } from '../../sink/row-batch.ts'

/** Fields of a payload frame from which rows derive, in addition to its body. */
export type PayloadSource = Pick<SelectedFrame, 'workspaceId' | 'surfaceId' | 'receivedAtMs' | 'only'> & {
  readonly contentType?: string
}

/** Reasons for refusing a whole payload. A payload is always refused for the same reason. */
const PAYLOAD_REFUSALS = {
  truncated: 'a length or value reaches past the end of its message',
  overlong_varint: 'a varint has more than ten bytes',
  invalid_tag: 'a field number of zero, a group, or an unknown wire type',
  too_many_pieces: 'embedded messages in pieces of more than 64 MiB together',
  no_records: 'the payload has fields, but no record of its signal',
  rows_too_large: 'the rows of the payload exceed the memory limit of a payload',
} as const
/** A key of PAYLOAD_REFUSALS. */
type PayloadRefusal = keyof typeof PAYLOAD_REFUSALS

/** Reasons for leaving out a row while its neighbours are stored. */
const ROW_REJECTIONS = {
  invalid_trace_id: 'not 16 bytes, or all zero',
  invalid_span_id: 'not 8 bytes, or all zero',
  invalid_parent_span_id: 'neither absent nor 8 bytes',
  invalid_bucket_counts: 'a histogram whose bucket counts are neither absent nor one more than its bounds',
  invalid_json_value: 'a JSON value that does not fit its field',
  json_value_left_out: 'a JSON value outside of records that does not fit its field (the records are stored)',
  exceptions_over_limit: 'an occurrence (not its span) above the limit of occurrences per payload',
  findings_over_limit: 'an occurrence (not its span) of a finding above the limit of findings per payload',
  session_id_too_long: 'a session id over 1,024 characters (not its record, which is stored without a session)',
} as const
/** A key of ROW_REJECTIONS. */
export type RowRejection = keyof typeof ROW_REJECTIONS
/**
 * Content of a record that replaces one with a JSON value that does not fit: `1` in field 19000, which protobuf reserves,
 * so that no message has it. Read as a little-endian number. It counts in bodies of JSON only.
 */
export const UNREADABLE_RECORD = 0x0109_a3c0

/** Most positions of rows left out for one reason that a payload reports. The others are only counted. */
export const MAX_REJECTED_INDEXES = 1_000
/** Rows left out of a payload, by reason, with the positions of their records in the payload. */
export type RejectedRows = Partial<Record<RowRejection, Rejection>>

/** Thrown to refuse a payload. It never leaves `append`, so it has no stack and one instance per reason. */
export class Refusal {
  readonly reason: PayloadRefusal

  constructor(reason: PayloadRefusal) {
    this.reason = reason
  }
}

/** Refusal of a payload that ends within a field. */
export const TRUNCATED = new Refusal('truncated')
/** Refusal of a payload with a varint of more than ten bytes. */
export const OVERLONG_VARINT = new Refusal('overlong_varint')
/** Refusal of a payload with a tag that protobuf does not define. */
export const INVALID_TAG = new Refusal('invalid_tag')
/** Refusal of a payload that gives one message in too many pieces. */
export const TOO_MANY_PIECES = new Refusal('too_many_pieces')
/** Refusal of a payload that has fields, but no record. */
export const NO_RECORD = new Refusal('no_records')
