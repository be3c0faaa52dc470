/** Why an OTLP/JSON payload is refused whole before a decoder sees it. The same payload always for the same reason. */
export const JSON_REFUSALS = {
  invalid_json: 'the body is not JSON text, or ends too early',
  invalid_json_value: 'a value has another JSON type than its field, or is out of its range',
  nesting_too_deep: 'objects and arrays are nested more than 300 deep',
  rows_too_large: 'what the payload says takes more than can be held for one',
} as const
export type JsonRefusalReason = keyof typeof JSON_REFUSALS

/** How the transcoder gives up. It never leaves `transcode`, so it carries no stack and is made once per reason. */
export class JsonRefusal {
  readonly reason: JsonRefusalReason

  constructor(reason: JsonRefusalReason) {
    this.reason = reason
  }
}

export const INVALID_JSON = new JsonRefusal('invalid_json')
export const INVALID_JSON_VALUE = new JsonRefusal('invalid_json_value')
export const JSON_TOO_DEEP = new JsonRefusal('nesting_too_deep')
