/** Reasons for refusing a whole OTLP/JSON payload before decoding. A payload is always refused for the same reason. */
export const JSON_REFUSALS = {
  invalid_json: 'the body is not JSON text, or ends too early',
  invalid_json_value: 'no record could be read, because of values that do not fit their fields',
  no_records: 'the body has fields, but none of its signal',
  nesting_too_deep: 'a value that is not read has objects and arrays more than 10,000 deep',
  rows_too_large: 'the payload as protobuf exceeds the memory limit of a payload',
} as const
/** A key of JSON_REFUSALS. */
export type JsonRefusalReason = keyof typeof JSON_REFUSALS

/** Thrown to refuse a payload. It never leaves `transcode`, so it has no stack and one instance per reason. */
export class JsonRefusal {
  readonly reason: JsonRefusalReason

  constructor(reason: JsonRefusalReason) {
    this.reason = reason
  }
}

/** Refusal of text that is not JSON. */
export const INVALID_JSON = new JsonRefusal('invalid_json')
/** Refusal of too deep nesting. */
export const JSON_TOO_DEEP = new JsonRefusal('nesting_too_deep')
/** Refusal of a body without a record, because of values that do not fit their fields. */
export const INVALID_JSON_VALUE = new JsonRefusal('invalid_json_value')
/** Refusal of a body that has only unknown fields. */
export const NO_RECORDS = new JsonRefusal('no_records')
