import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'

/** Returns random numbers in [0, 1) from a seed (mulberry32). */
export type Random = () => number

export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Field {
  number: number
  wireType: WireType
  /** Encoded tag and content. */
  bytes: Uint8Array
}

/**
 * Encodes the same message in another way that protobuf allows: fields in any order, unknown fields between them,
 * values that later ones replace, embedded messages in several pieces, varints with padding.
 */
export function scrambleMessage(bytes: Uint8Array, desc: DescMessage, random: Random): Uint8Array {
  const known = new Map(desc.fields.map(field => [field.number, field]))
  const fields = readFields(bytes).flatMap(field => rewriteField(field, known.get(field.number), random))
  return Buffer.concat(withUnknown(shuffled(fields, desc, random), desc, random).map(field => field.bytes))
}

function readFields(bytes: Uint8Array): (Field & { content: Uint8Array })[] {
  const reader = new BinaryReader(bytes)
  const fields = []
  while (reader.pos < reader.len) {
    const start = reader.pos
    const [number, wireType] = reader.tag()
    const contentStart = reader.pos
    const content = wireType === WireType.LengthDelimited ? reader.bytes() : reader.skip(wireType, number)
    const whole = bytes.subarray(start, reader.pos)
    fields.push({ number, wireType, bytes: whole, content: content.slice(), contentStart })
  }
  return fields
}

function rewriteField(field: Field & { content: Uint8Array }, desc: DescField | undefined, random: Random): Field[] {
  const { number, wireType } = field
  if (wireType !== WireType.LengthDelimited) {
    // A later value replaces an earlier one.
    return random() < 0.1 ? [makeField(number, wireType, random), field] : [field]
  }
  if (desc === undefined) return [field]
  const message =
    desc.fieldKind === 'message' || (desc.fieldKind === 'list' && desc.listKind === 'message')
      ? desc.message
      : undefined
  if (message === undefined) {
    const later = delimited(number, field.content, random)
    return desc.fieldKind !== 'list' && random() < 0.1 ? [makeField(number, wireType, random), later] : [later]
  }
  const content = scrambleMessage(field.content, message as DescMessage, random)
  if (desc.fieldKind === 'list' || random() < 0.7) return [delimited(number, content, random)]
  const inner = readFields(content)
  const cut = Math.floor(random() * (inner.length + 1))
  return [inner.slice(0, cut), inner.slice(cut)].map(part =>
    delimited(number, Buffer.concat(part.map(piece => piece.bytes)), random),
  )
}

/** Reorders fields; fields of one number and members of a oneof keep their order. */
function shuffled(fields: Field[], desc: DescMessage, random: Random): Field[] {
  if (random() < 0.5) return fields
  const oneofs = new Map(desc.fields.map(field => [field.number, field.oneof?.name ?? String(field.number)]))
  const groups = new Map<string, Field[]>()
  for (const field of fields) {
    const key = oneofs.get(field.number) ?? String(field.number)
    groups.set(key, [...(groups.get(key) ?? []), field])
  }
  const queues = [...groups.values()]
  const result: Field[] = []
  while (result.length < fields.length) {
    const queue = queues[Math.floor(random() * queues.length)] as Field[]
    const next = queue.shift()
    if (next) result.push(next)
    else queues.splice(queues.indexOf(queue), 1)
  }
  return result
}

function withUnknown(fields: Field[], desc: DescMessage, random: Random): Field[] {
  const used = new Set(desc.fields.map(field => field.number))
  return fields.flatMap(field => {
    if (random() > 0.08) return [field]
    let number = 0
    do number = [17, 100, 2047, 2048, 2 ** 29 - 1][Math.floor(random() * 5)] as number
    while (used.has(number))
    const wireTypes = [WireType.Varint, WireType.Bit64, WireType.LengthDelimited, WireType.Bit32]
    return [makeField(number, wireTypes[Math.floor(random() * 4)] as WireType, random), field]
  })
}

/** Makes a field with random content. */
function makeField(number: number, wireType: WireType, random: Random): Field {
  const writer = new BinaryWriter().tag(number, wireType)
  const value = Math.floor(random() * 2 ** 32)
  if (wireType === WireType.Varint) writer.uint64(BigInt(value) << (random() < 0.5 ? 0n : 31n))
  else if (wireType === WireType.Bit64) writer.fixed64(BigInt(value) << 20n)
  else if (wireType === WireType.Bit32) writer.fixed32(value)
  else writer.bytes(Buffer.alloc(Math.floor(random() * 20), value % 256))
  return { number, wireType, bytes: writer.finish() }
}

function delimited(number: number, content: Uint8Array, random: Random): Field {
  const tag = paddedVarint(((number << 3) | WireType.LengthDelimited) >>> 0, 5, random)
  const bytes = Buffer.concat([tag, paddedVarint(content.length, 10, random), content])
  return { number, wireType: WireType.LengthDelimited, bytes }
}

/** Encodes a varint, sometimes longer than necessary. */
function paddedVarint(value: number, maxBytes: number, random: Random): Uint8Array {
  const bytes = [...new BinaryWriter().uint32(value).finish()]
  if (random() > 0.05 || bytes.length === maxBytes) return Uint8Array.from(bytes)
  const padding = 1 + Math.floor(random() * (maxBytes - bytes.length))
  bytes[bytes.length - 1] = (bytes.at(-1) as number) | 0x80
  return Uint8Array.from([...bytes, ...Array(padding - 1).fill(0x80), 0])
}
