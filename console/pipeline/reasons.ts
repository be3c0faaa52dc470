/** Sentences for the labels of requests and records that are not stored (shared/runtime/reason.ts). */
const SENTENCES: Readonly<Record<string, string>> = {
  bad_compression: 'The body could not be decompressed.',
  too_large_decompressed: 'The body is larger than a request may be once it is decompressed.',
  truncated: 'The body ends in the middle of a field: it was cut on its way, or is not OTLP.',
  overlong_varint: 'The body is no valid protobuf: a number has too many bytes.',
  invalid_tag: 'The body is no valid protobuf: a field has an unknown form.',
  too_many_pieces: 'The body is divided into more pieces than a request may have.',
  no_records: 'The request has no span, log record or point.',
  rows_too_large: 'Its records are larger than a request may be once they are read.',
  invalid_json: 'The body is no valid JSON.',
  invalid_json_value: 'A value has another type than its field in OTLP.',
  nesting_too_deep: 'Values are nested more deeply than a request may have them.',
  not_json_lines: 'A chunk of a recording consists of lines of JSON, one event each; this one does not.',
  no_events: 'The chunk of a recording has no event.',
  too_many_events: 'The chunk has more events than one may have: the recorder has to send smaller ones.',
  too_many_values: 'The chunk has more values than one may have: the recorder has to send smaller ones.',
  too_many_blanks: 'The chunk consists of blanks mostly.',
  line_too_long: 'An event of the chunk is larger than one may be.',
  replay_conflict: 'Another chunk with the same number was stored before.',
  claim_replaced: 'Another upload of the same map took its place.',
  forgotten: 'The upload was begun too long ago.',
  invalid_request: 'The request breaks a rule, which its details name.',
  refused_by_clickhouse: 'ClickHouse refused the rows. The operator of the service has to look at it.',
  refused_by_object_store: 'The object store refused the bytes. The operator of the service has to look at it.',
  decoder_fault: 'The service could not read it: an error of the service.',
  killed_worker: 'Workers ended again and again while they read it.',
  set_aside: 'An operator has put it aside.',
  records_rejected: 'Some of its records break a rule. The others are stored.',
  exceptions_not_stored: 'Its spans or log records are stored, but not their exceptions.',
  invalid_trace_id: 'An id of a trace has another length than 16 bytes, or consists of zeros.',
  invalid_span_id: 'An id of a span has another length than 8 bytes, or consists of zeros.',
  invalid_parent_span_id: 'An id of a parent span has another length than 8 bytes.',
  invalid_bucket_counts: 'A histogram has other numbers of bounds and counts than they must have.',
  json_value_left_out: 'A value could not be read, and is left out.',
  exceptions_over_limit: 'The request has more exceptions than are grouped.',
  findings_over_limit: 'The workspace has more findings than are kept.',
}

/** Returns why something with this reason is not stored, in a sentence; undefined for a reason that explains itself. */
export function sentenceOf(reason: string): string | undefined {
  const label = reason.split(':', 1)[0] ?? ''
  return SENTENCES[label]
}
