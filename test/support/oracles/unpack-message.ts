import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { Random } from '../payloads/scramble-message.ts'

/**
 * Encodes the same message with some of its packed repeated fields value by value, or in several packed runs and single
 * values between them. A parser must accept both, whatever the declaration of the field.
 */
export function unpackMessage(bytes: Uint8Array, desc: DescMessage, random: Random): Uint8Array {
  const fields = new Map(desc.fields.map(field => [field.number, field]))
  const reader = new BinaryReader(bytes)
  const writer = new BinaryWriter()
  while (reader.pos < reader.len) {
    const start = reader.pos
    const [number, wireType] = reader.tag()
    const field = fields.get(number)
    if (wireType !== WireType.LengthDelimited || field === undefined) {
      reader.skip(wireType, number)
      writer.raw(bytes.subarray(start, reader.pos))
      continue
    }
    const content = reader.bytes()
    if (field.message) writer.tag(number, wireType).bytes(unpackMessage(content, field.message, random))
    else if (isPacked(field)) writeValues(writer, field, content, random)
    else writer.tag(number, wireType).bytes(content)
  }
  return writer.finish()
}

function isPacked(field: DescField): boolean {
  if (field.fieldKind !== 'list' || field.listKind !== 'scalar') return false
  return field.scalar !== ScalarType.STRING && field.scalar !== ScalarType.BYTES
}

function writeValues(writer: BinaryWriter, field: DescField, content: Uint8Array, random: Random): void {
  const isVarint = field.scalar === ScalarType.UINT64
  const single = isVarint ? WireType.Varint : WireType.Bit64
  const reader = new BinaryReader(content)
  while (reader.pos < reader.len) {
    const start = reader.pos
    const isRun = random() < 0.3
    do {
      if (isVarint) reader.uint64()
      else reader.fixed64()
    } while (isRun && reader.pos < reader.len && random() < 0.8)
    const values = content.subarray(start, reader.pos)
    if (isRun) writer.tag(field.number, WireType.LengthDelimited).bytes(values)
    else writer.tag(field.number, single).raw(values)
  }
}
