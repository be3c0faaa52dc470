import fc from 'fast-check'
import { PLACE_ATTRIBUTES } from '../../../workers/otlp/protobuf/place-attributes.ts'

/** Random texts, and texts that decide between two branches of the code. */
const EDGE_TEXTS = [
  '',
  '"',
  '\\',
  '\u0000',
  '\n',
  '\u007f',
  'é',
  '日本',
  '👩‍🚀',
  'a'.repeat(31),
  'b'.repeat(127),
  'c'.repeat(128),
  'd'.repeat(20_000),
]
const KEYS = [
  'session.id',
  'http.route',
  'http.response.status_code',
  'http.status_code',
  'a',
  'http.roue',
  'db.system.name',
  'db.namespace',
  'messaging.system',
  'server.address',
  'url.full',
  'session_id',
  '__proto__',
]
/** Attribute names that describe an exception. */
export const EXCEPTION_KEYS = [
  'exception.type',
  'exception.message',
  'exception.stacktrace',
  'exception.escaped',
  'exception.debug_ids',
]
const EDGE_INTS = [
  0n,
  1n,
  9n,
  10n,
  127n,
  128n,
  200n,
  404n,
  32_767n,
  32_768n,
  99_999n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n,
  2n ** 63n - 1n,
]
const EDGE_DOUBLES = [0, -0, 1, -1, 0.1, 1e21, 1e-7, 5e-324, Number.MAX_VALUE, 2 ** 53, NaN, Infinity, -Infinity]

export const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'grapheme-ascii', maxLength: 40 }) },
  { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  { weight: 1, arbitrary: fc.constantFrom(...EDGE_TEXTS) },
)

/** Generates 32-bit integers, also at the limits. */
export const uint32 = fc.oneof(fc.constantFrom(0, 1, 127, 128, 2 ** 31, 2 ** 32 - 1), fc.nat())
/** Generates 64-bit integers, also at the limits. */
export const uint64 = fc.oneof(fc.constantFrom(0n, 1n, 2n ** 64n - 1n), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }))
const int64 = fc.oneof(
  fc.constantFrom(...EDGE_INTS, ...EDGE_INTS.map(value => -value), -(2n ** 63n)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
)
const double = fc.oneof(fc.constantFrom(...EDGE_DOUBLES), fc.double())

/** Init objects of AnyValue of every kind and of none, a few levels deep. */
export const { anyValue, keyValue } = fc.letrec<{ anyValue: AnyValueInit; keyValue: KeyValueInit }>(tie => ({
  anyValue: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 6, arbitrary: text.map(value => ({ value: { case: 'stringValue' as const, value } })) },
    { weight: 3, arbitrary: int64.map(value => ({ value: { case: 'intValue' as const, value } })) },
    { weight: 1, arbitrary: fc.boolean().map(value => ({ value: { case: 'boolValue' as const, value } })) },
    { weight: 2, arbitrary: double.map(value => ({ value: { case: 'doubleValue' as const, value } })) },
    {
      weight: 1,
      arbitrary: fc.uint8Array({ maxLength: 40 }).map(value => ({ value: { case: 'bytesValue' as const, value } })),
    },
    { weight: 1, arbitrary: fc.constant({ value: { case: undefined } }) },
    {
      weight: 1,
      arbitrary: fc
        .array(tie('anyValue'), { maxLength: 4 })
        .map(values => ({ value: { case: 'arrayValue' as const, value: { values } } })),
    },
    {
      weight: 1,
      arbitrary: fc
        .array(tie('keyValue'), { maxLength: 4 })
        .map(values => ({ value: { case: 'kvlistValue' as const, value: { values } } })),
    },
  ),
  keyValue: fc.record(
    { key: fc.oneof(fc.constantFrom(...KEYS), fc.constantFrom(...PLACE_ATTRIBUTES), text), value: tie('anyValue') },
    { requiredKeys: ['key'] },
  ),
}))

/** Init object of an AnyValue. */
type AnyValueInit = {
  value:
    | { case: 'stringValue'; value: string }
    | { case: 'intValue'; value: bigint }
    | { case: 'boolValue'; value: boolean }
    | { case: 'doubleValue'; value: number }
    | { case: 'bytesValue'; value: Uint8Array<ArrayBuffer> }
    | { case: 'arrayValue'; value: { values: AnyValueInit[] } }
    | { case: 'kvlistValue'; value: { values: KeyValueInit[] } }
    | { case: undefined }
}
/** Init object of a KeyValue. */
type KeyValueInit = { key: string; value?: AnyValueInit }

/** Generates lists of attributes. */
export const attributes = fc.array(keyValue, { maxLength: 6 })
/** Generates resources. */
export const resource = fc.record({
  attributes: fc.array(
    fc.oneof(keyValue, fc.record({ key: fc.constantFrom('service.name', 'service.version'), value: anyValue })),
    { maxLength: 6 },
  ),
  droppedAttributesCount: uint32,
})
/** Generates instrumentation scopes. */
export const scope = fc.record({ name: text, version: text, attributes, droppedAttributesCount: uint32 })
