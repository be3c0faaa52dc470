import { create, type DescField, type DescMessage, type MessageShape, ScalarType } from '@bufbuild/protobuf'
import type { Random } from './scramble-message.ts'

/** Depth below which messages contain no further messages. */
const MAX_DEPTH = 14
const MAX_ITEMS = 3

const TEXTS = [
  '',
  '"',
  '\\',
  '\u0000',
  '\n',
  '/',
  '\u007f',
  'é',
  '\u{1F469}‍\u{1F680}',
  '\ud800',
  '\udc00x',
  'GET /api/:id',
]
const TEXT_LENGTHS = [3, 4, 7, 8, 31, 32, 123, 124, 125, 127, 128, 129, 300]
const CHARACTERS = [...'abcdefghijklmnopqrstuvwxyz ABC0123456789./:_-\'é日\u{1F6B0}"\\\n\t\u0001']
const DOUBLES = [
  0,
  -0,
  1,
  -1,
  0.1,
  1e21,
  1e-7,
  5e-324,
  2.2250738585072014e-308,
  Number.MAX_VALUE,
  2 ** 53,
  2 ** 53 + 2,
  1 / 3,
]
const SPECIAL_DOUBLES = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]

/** Makes a message of any type with any of its fields, or none, and with values that decoders often get wrong. */
export function randomMessage<Desc extends DescMessage>(desc: Desc, random: Random): MessageShape<Desc> {
  return create(desc, randomFields(desc, random, 0, 0.3 + random() * 0.6) as never) as MessageShape<Desc>
}

function randomFields(desc: DescMessage, random: Random, depth: number, rate: number): Record<string, unknown> {
  const init: Record<string, unknown> = {}
  for (const oneof of desc.oneofs) {
    if (random() > Math.max(rate, 0.8)) continue
    const members = depth < MAX_DEPTH ? oneof.fields : oneof.fields.filter(field => !field.message)
    const member = pick(members, random)
    init[oneof.localName] = { case: member.localName, value: randomValue(member, random, depth, rate) }
  }
  for (const field of desc.fields) {
    if (field.oneof) continue
    if (field.fieldKind === 'list') {
      if (field.message && depth >= MAX_DEPTH) continue
      const length = random() < rate ? Math.floor(random() * (MAX_ITEMS + 1)) : depth < 3 ? 1 : 0
      init[field.localName] = Array.from({ length }, () => randomValue(field, random, depth, rate))
    } else if (random() < (isId(field) ? 0.95 : rate) && !(field.message && depth >= MAX_DEPTH)) {
      init[field.localName] = randomValue(field, random, depth, rate)
    }
  }
  return init
}

function randomValue(field: DescField, random: Random, depth: number, rate: number): unknown {
  if (field.message) {
    return create(field.message, randomFields(field.message, random, depth + 1, depth > 8 ? rate / 2 : rate) as never)
  }
  if (field.enum)
    return random() < 0.9 ? pick(field.enum.values, random).number : pick([99, -1, 2 ** 31 - 1, -(2 ** 31)], random)
  if (isId(field)) return randomId(field.name, random)
  return randomScalar(field.scalar as ScalarType, random)
}

function isId(field: DescField): boolean {
  return field.scalar === ScalarType.BYTES && field.name.endsWith('_id')
}

function randomId(name: string, random: Random): Uint8Array {
  const length = random() < 0.9 ? (name === 'trace_id' ? 16 : 8) : Math.floor(random() * 20)
  return Uint8Array.from({ length }, () => random() * 256)
}

/** Makes a random value of a scalar type. */
export function randomScalar(type: ScalarType, random: Random): unknown {
  switch (type) {
    case ScalarType.STRING:
      return randomText(random)
    case ScalarType.BOOL:
      return random() < 0.5
    case ScalarType.BYTES:
      return Uint8Array.from({ length: Math.floor(random() ** 3 * 300) }, () => random() * 256)
    case ScalarType.DOUBLE:
      return randomDouble(random)
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return Number(randomInteger(32, random))
    case ScalarType.INT32:
    case ScalarType.SINT32:
      return Number(BigInt.asIntN(32, randomInteger(32, random)))
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return randomInteger(64, random)
    case ScalarType.INT64:
    case ScalarType.SFIXED64:
      return BigInt.asIntN(64, randomInteger(64, random))
    default:
      throw new Error(`OTLP has no ${ScalarType[type]}`)
  }
}

function randomText(random: Random): string {
  const choice = random()
  if (choice < 0.15) return pick(TEXTS, random)
  const length = choice < 0.25 ? pick(TEXT_LENGTHS, random) : Math.floor(random() * 40)
  // Half of the texts are plain ASCII, as nearly all real texts are.
  const characters = random() < 0.5 ? 30 : CHARACTERS.length
  let text = ''
  for (let i = 0; i < length; i++) text += CHARACTERS[Math.floor(random() * characters)]
  return text
}

function randomDouble(random: Random): number {
  const choice = random()
  if (choice < 0.3) return pick(DOUBLES, random)
  if (choice < 0.4) return pick(SPECIAL_DOUBLES, random)
  if (choice < 0.7) return Math.round(random() * 1e6) / 1000
  const view = new DataView(new ArrayBuffer(8))
  view.setUint32(0, random() * 2 ** 32)
  view.setUint32(4, random() * 2 ** 32)
  const value = view.getFloat64(0)
  return Number.isFinite(value) ? value : 0.5
}

/** Makes an integer with any number of bits, at the limits, near powers of two and ten, or round. */
function randomInteger(bits: number, random: Random): bigint {
  const width = BigInt(1 + Math.floor(random() * bits))
  const choice = random()
  let value = BigInt(Math.floor(random() * 2 ** 32)) * 2n ** 32n + BigInt(Math.floor(random() * 2 ** 32))
  if (choice < 0.1) value = (1n << width) - 1n
  else if (choice < 0.2) value = 1n << (width - 1n)
  else if (choice < 0.3) value = 10n ** BigInt(Math.floor(random() * 20)) - BigInt(Math.floor(random() * 2))
  else if (choice < 0.35) value = 0n
  else value >>= 64n - width
  return BigInt.asUintN(bits, value)
}

function pick<T>(values: readonly T[], random: Random): T {
  return values[Math.floor(random() * values.length)] as T
}
