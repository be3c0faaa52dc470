import type { FieldSpec } from '../protobuf/message-specs.ts'

/** Formats of a field's value in JSON and on the wire. `id` is bytes that OTLP/JSON writes as hex. */
export const FieldKind = {
  message: 0,
  string: 1,
  id: 2,
  bytes: 3,
  bool: 4,
  enum: 5,
  double: 6,
  // The following kinds are integers.
  uint32: 7,
  sint32: 8,
  fixed32: 9,
  int64: 10,
  uint64: 11,
  fixed64: 12,
  sfixed64: 13,
  // A `fixed64` of nanoseconds. Only here may an integer have a fraction, which is cut off.
  time: 14,
} as const
/** One of the kinds of fields. */
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind]

/** A field in the form that the transcoder uses: the JSON key as words to compare, the tag as bytes to write. */
export interface Field {
  readonly name: string
  /** The name in the .proto file, in snake_case. */
  readonly originalName: string
  readonly kind: FieldKind
  readonly repeated: boolean
  /** Tag of one or two bytes, little-endian. */
  readonly tag: number
  readonly tagBytes: number
  /** The bytes `name":` as 32-bit little-endian words. The last word is masked. */
  readonly keyWords: Int32Array
  readonly keyLastMask: number
  readonly keyBytes: number
  /** Type of a message field. */
  message: MessageType | undefined
  /** Numbers of an enum field by name, with and without the prefix that names the enum. */
  readonly numbers: ReadonlyMap<string, number> | undefined
  /** Another field whose name begins with a character of the same low five bits. */
  alternative: Field | undefined
  /** Member of the same oneof that takes a number which does not fit this one. */
  substitute: Field | undefined
  /** The field that followed this one the last time, because writers keep an order. */
  next: Field
}

/** Type of a protobuf message: its fields by their JSON names. */
export interface MessageType {
  /** Fields by the low five bits of the first character of the name; see `alternative`. */
  readonly byInitial: readonly (Field | undefined)[]
  readonly lengthBytes: number
  /** Whether its messages are rows. A value that does not fit rejects the row that contains it. */
  readonly isRecord: boolean
  /** Member that takes a value of any other form as text: `stringValue` of AnyValue. */
  readonly text: Field | undefined
  /** The field that came first the last time. */
  first: Field
}

/** Length of the longest known key with quote and colon. If this much input is left, words need no bounds check. */
export const MAX_KEY_BYTES = 24

const REPEATABLE: ReadonlySet<FieldKind> = new Set([
  FieldKind.message,
  FieldKind.string,
  FieldKind.double,
  FieldKind.fixed64,
  FieldKind.uint64,
])

/** Messages that become rows of their own. */
const RECORDS: ReadonlySet<string> = new Set([
  'Span',
  'LogRecord',
  'NumberDataPoint',
  'HistogramDataPoint',
  'ExponentialHistogramDataPoint',
  'SummaryDataPoint',
])

const FIXED64 = 1
const LENGTH_DELIMITED = 2
const FIXED32 = 5

/** Creates message types that refer to each other from tables of their fields. Throws if a table is invalid. */
export function linkMessages(
  messageSpecs: Readonly<Record<string, Readonly<Record<string, FieldSpec>>>>,
  enumSpecs: Readonly<Record<string, readonly string[]>>,
  lengthBytes: Readonly<Record<string, number>>,
): ReadonlyMap<string, MessageType> {
  const types = new Map<string, MessageType>()
  const links: { field: Field; name: string }[] = []
  for (const [messageName, fieldSpecs] of Object.entries(messageSpecs)) {
    const byInitial = new Array<Field | undefined>(32).fill(undefined)
    const byName = new Map<string, Field>()
    for (const [name, [number, typeName, repeated]] of Object.entries(fieldSpecs)) {
      const numbers = numbersByName(typeName, enumSpecs[typeName])
      const kind = numbers ? FieldKind.enum : (FieldKind[typeName as keyof typeof FieldKind] ?? FieldKind.message)
      const field = makeField(name, number, kind, repeated !== undefined, numbers)
      if (repeated && !REPEATABLE.has(kind)) throw new Error(`repeated ${typeName} is not provided for`)
      const initial = name.charCodeAt(0) & 31
      field.alternative = byInitial[initial]
      byInitial[initial] = field
      byName.set(name, field)
      if (kind === FieldKind.message) links.push({ field, name: typeName })
    }
    const [first] = byName.values()
    if (first === undefined) throw new Error(`${messageName} has no fields`)
    const integer = byName.get('asInt')
    if (integer !== undefined) integer.substitute = byName.get('asDouble')
    types.set(messageName, {
      byInitial,
      lengthBytes: lengthBytes[messageName] ?? 1,
      isRecord: RECORDS.has(messageName),
      text: byName.get('stringValue'),
      first,
    })
  }
  for (const { field, name } of links) {
    field.message = types.get(name)
    if (field.message === undefined) throw new Error(`there is no message ${name}`)
  }
  return types
}

/** Returns the numbers of an enum by name: SpanKind has 2 for SPAN_KIND_SERVER and SERVER. */
function numbersByName(enumName: string, names: readonly string[] | undefined): Map<string, number> | undefined {
  if (names === undefined) return undefined
  const prefix = `${snakeCase(enumName).toUpperCase()}_`
  return new Map(names.flatMap((name, number) => [name, name.slice(prefix.length)].map(key => [key, number] as const)))
}

function snakeCase(name: string): string {
  return name.replace(/(?<!^)[A-Z]/g, '_$&').toLowerCase()
}

function makeField(
  name: string,
  number: number,
  kind: FieldKind,
  repeated: boolean,
  numbers: ReadonlyMap<string, number> | undefined,
): Field {
  const key = Buffer.alloc(MAX_KEY_BYTES)
  const keyBytes = key.write(`${name}":`)
  if (keyBytes !== name.length + 2) throw new Error(`${name} is too long`)
  const keyWords = Int32Array.from({ length: Math.ceil(keyBytes / 4) }, (_, i) => key.readInt32LE(i * 4))
  const keyLastMask = keyBytes % 4 === 0 ? -1 : (1 << (8 * (keyBytes % 4))) - 1
  const tag = (number << 3) | wireType(kind, repeated)
  const field = {
    name,
    originalName: snakeCase(name),
    kind,
    repeated,
    tag: tag < 0x80 ? tag : (tag & 0x7f) | 0x80 | ((tag >>> 7) << 8),
    tagBytes: tag < 0x80 ? 1 : 2,
    keyWords,
    keyLastMask,
    keyBytes,
    message: undefined,
    numbers,
    alternative: undefined,
    substitute: undefined,
  }
  const linked = field as typeof field & { next: Field }
  linked.next = linked
  return linked
}

/** Returns the wire type of a field. Repeated numbers are packed. */
function wireType(kind: FieldKind, repeated: boolean): number {
  switch (kind) {
    case FieldKind.message:
    case FieldKind.string:
    case FieldKind.id:
    case FieldKind.bytes:
      return LENGTH_DELIMITED
    case FieldKind.double:
    case FieldKind.fixed64:
    case FieldKind.sfixed64:
    case FieldKind.time:
      return repeated ? LENGTH_DELIMITED : FIXED64
    case FieldKind.fixed32:
      return repeated ? LENGTH_DELIMITED : FIXED32
    default:
      return repeated ? LENGTH_DELIMITED : 0
  }
}
