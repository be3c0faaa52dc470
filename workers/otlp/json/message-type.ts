/** How a field's value is written in JSON and on the wire. `id` is bytes that OTLP/JSON writes as hex. */
export const FieldKind = {
  message: 0,
  string: 1,
  id: 2,
  bytes: 3,
  bool: 4,
  enum: 5,
  double: 6,
  // From here on: integers.
  uint32: 7,
  sint32: 8,
  fixed32: 9,
  int64: 10,
  uint64: 11,
  fixed64: 12,
  sfixed64: 13,
} as const
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind]

/** Field number, type, and whether it repeats. The type is a key of `FieldKind` or the name of an enum or message. */
export type FieldSpec = readonly [number: number, type: string, repeated?: 'repeated']

/** A field as the transcoder wants it: its JSON key as words to compare with, its tag as bytes to write. */
export interface Field {
  readonly name: string
  readonly kind: FieldKind
  readonly repeated: boolean
  /** One or two bytes, little-endian. */
  readonly tag: number
  readonly tagBytes: number
  /** `name":` in 32-bit little-endian words; the last is masked. */
  readonly keyWords: Int32Array
  readonly keyLastMask: number
  readonly keyBytes: number
  /** Of a message field. */
  message: MessageType | undefined
  /** Of an enum field: numbers by name. */
  readonly numbers: ReadonlyMap<string, number> | undefined
  /** Another field whose name begins with a character of the same low five bits. */
  alternative: Field | undefined
  /** The field that came after this one the last time: writers keep an order. */
  next: Field
}

export interface MessageType {
  /** By the low five bits of the first character of the name; see `alternative`. */
  readonly byInitial: readonly (Field | undefined)[]
  readonly lengthBytes: number
  /** The field that came first the last time. */
  first: Field
}

/** No key of ours with its quote and colon is longer: where so much input is left, words can be compared unchecked. */
export const MAX_KEY_BYTES = 24

const REPEATABLE: ReadonlySet<FieldKind> = new Set([
  FieldKind.message,
  FieldKind.string,
  FieldKind.double,
  FieldKind.fixed64,
  FieldKind.uint64,
])

const FIXED64 = 1
const LENGTH_DELIMITED = 2
const FIXED32 = 5

/** Message types that refer to each other, from tables by name. Faults in a table throw: they are ours. */
export function linkMessages(
  messageSpecs: Readonly<Record<string, Readonly<Record<string, FieldSpec>>>>,
  enumSpecs: Readonly<Record<string, readonly string[]>>,
  lengthBytes: Readonly<Record<string, number>>,
): ReadonlyMap<string, MessageType> {
  const types = new Map<string, MessageType>()
  const links: { field: Field; name: string }[] = []
  for (const [messageName, fieldSpecs] of Object.entries(messageSpecs)) {
    const byInitial = new Array<Field | undefined>(32).fill(undefined)
    let first: Field | undefined
    for (const [name, [number, typeName, repeated]] of Object.entries(fieldSpecs)) {
      const names = enumSpecs[typeName]
      const numbers = names && new Map(names.map((valueName, value) => [valueName, value]))
      const kind = numbers ? FieldKind.enum : (FieldKind[typeName as keyof typeof FieldKind] ?? FieldKind.message)
      const field = makeField(name, number, kind, repeated !== undefined, numbers)
      if (repeated && !REPEATABLE.has(kind)) throw new Error(`repeated ${typeName} is not provided for`)
      const initial = name.charCodeAt(0) & 31
      field.alternative = byInitial[initial]
      byInitial[initial] = field
      first ??= field
      if (kind === FieldKind.message) links.push({ field, name: typeName })
    }
    if (first === undefined) throw new Error(`${messageName} has no fields`)
    types.set(messageName, { byInitial, lengthBytes: lengthBytes[messageName] ?? 1, first })
  }
  for (const { field, name } of links) {
    field.message = types.get(name)
    if (field.message === undefined) throw new Error(`there is no message ${name}`)
  }
  return types
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
  }
  const linked = field as typeof field & { next: Field }
  linked.next = linked
  return linked
}

/** Repeated numbers are written packed. */
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
      return repeated ? LENGTH_DELIMITED : FIXED64
    case FieldKind.fixed32:
      return repeated ? LENGTH_DELIMITED : FIXED32
    default:
      return repeated ? LENGTH_DELIMITED : 0
  }
}
