import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { describe, expect, it } from 'vitest'
import { GrowingBuffer, type GrowthLimit, RowsTooLarge } from '../../../clickhouse/native/growing-buffer.ts'
import { MIB } from '../../../schemas/units.ts'
import { Attributes } from './attributes.ts'
import { PackedAttributes } from './packed-attributes.ts'
import { WireCursor } from './wire.ts'

const string = (text: string) => new BinaryWriter().tag(1, 2).string(text).finish()
const int = (value: bigint) => new BinaryWriter().tag(3, 0).int64(value).finish()
const keyOf = (text: string) => new BinaryWriter().tag(1, 2).string(text).finish()
const anyOf = (any: Uint8Array) => new BinaryWriter().tag(2, 2).bytes(any).finish()

type Read = [keyLength: number, key: string, type: number, text: string]

/** Reads a KeyValue message made of these pieces. */
function readAlone(...pieces: Uint8Array[]): Read {
  const bytes = Buffer.concat(pieces)
  const attributes = new Attributes(new GrowingBuffer())
  // The bytes before must not matter.
  attributes.append(new WireCursor(Buffer.concat([keyOf('before')])), 0, 8)
  const [keys, types] = [attributes.keys.length, attributes.types.length]
  const keyLength = attributes.append(new WireCursor(bytes), 0, bytes.length)
  const key = attributes.keys.bytes.toString('utf8', attributes.keys.length - keyLength, attributes.keys.length)
  const prefix = attributes.keys.length - keys - keyLength
  expect(prefix).toBe(keyLength < 128 ? 1 : keyLength < 16_384 ? 2 : 3)
  const text = attributes.values.bytes.toString('utf8', attributes.valueStart, attributes.values.length)
  return [keyLength, key, attributes.types.bytes[types] as number, text]
}

/** Reads the message as an attribute of a record. */
function readPacked(...pieces: Uint8Array[]): Read {
  const bytes = Buffer.concat(pieces)
  const attributes = new PackedAttributes()
  attributes.begin()
  attributes.append(new WireCursor(Buffer.concat([keyOf('before')])), 0, 8)
  const keyLength = attributes.append(new WireCursor(bytes), 0, bytes.length)
  const { keys, keyEnd, type, values, valueStart, valueEnd } = attributes
  const key = keys.bytes.toString('utf8', keyEnd - keyLength, keyEnd)
  return [keyLength, key, type, values.bytes.toString('utf8', valueStart, valueEnd)]
}

describe.each([
  ['an attribute of an event', readAlone],
  ['an attribute of a record', readPacked],
])('%s', (_, read) => {
  it('is read in the form that every SDK writes', () => {
    expect(read(keyOf('key'), anyOf(string('text')))).toEqual([3, 'key', 1, 'text'])
    expect(read(keyOf('key'), anyOf(int(404n)))).toEqual([3, 'key', 3, '404'])
    expect(read(keyOf('key'), anyOf(int(-1n)))).toEqual([3, 'key', 3, '-1'])
    expect(read(keyOf('key'), anyOf(new BinaryWriter().tag(2, 0).bool(true).finish()))).toEqual([3, 'key', 2, 'true'])
    expect(read(keyOf('key'), anyOf(new BinaryWriter().tag(4, 1).double(0.5).finish()))).toEqual([3, 'key', 4, '0.5'])
  })

  it.each([125, 126, 127, 128, 129, 16_383, 16_384])('of %i bytes is read like a shorter one', size => {
    expect(read(keyOf('k'.repeat(size)), anyOf(string('t'.repeat(size))))).toEqual([
      size,
      'k'.repeat(size),
      1,
      't'.repeat(size),
    ])
  })

  it('is read in any other form that protobuf allows', () => {
    expect(read()).toEqual([0, '', 0, ''])
    expect(read(keyOf('key'))).toEqual([3, 'key', 0, ''])
    expect(read(anyOf(string('text')), keyOf('key'))).toEqual([3, 'key', 1, 'text'])
    expect(read(keyOf('old'), keyOf('key'), anyOf(string('text')))).toEqual([3, 'key', 1, 'text'])
    expect(read(keyOf('key'), anyOf(string('text')), anyOf(new Uint8Array()))).toEqual([3, 'key', 1, 'text'])
    expect(read(keyOf('key'), anyOf(Buffer.concat([int(1n), string('last')])))).toEqual([3, 'key', 1, 'last'])
    expect(read(keyOf('key'), anyOf(Buffer.concat([string('first'), int(2n)])))).toEqual([3, 'key', 3, '2'])
  })

  it('is not taken for the usual form when a length only looks like it', () => {
    // The value's length 5 is padded to two bytes, and its first byte, 0x85, is what is left of the message after it.
    const padded = Buffer.concat([Buffer.from([0x12, 0x85, 0x00]), string('abc')])
    const filler = new BinaryWriter()
      .tag(100, 2)
      .bytes(new Uint8Array(0x85 - 9))
      .finish()
    expect(padded.length + filler.length).toBe(0x85 + 2)
    expect(read(keyOf('key'), padded, filler)).toEqual([3, 'key', 1, 'abc'])
  })
})

it.each<[string, (budget: GrowthLimit) => Pick<Attributes, 'append'>]>([
  [
    'an event',
    budget => {
      const column = new GrowingBuffer()
      column.budget = budget
      return new Attributes(column)
    },
  ],
  [
    'a record',
    budget => {
      const attributes = new PackedAttributes()
      attributes.values.budget = budget
      return attributes
    },
  ],
])('a value of %s that is longer in JSON takes no more memory than the table may', (_, create) => {
  // A control character has six bytes in JSON.
  const text = string('\x01'.repeat(2 * MIB))
  const list = new BinaryWriter().tag(5, 2).bytes(new BinaryWriter().tag(1, 2).bytes(text).finish()).finish()
  const bytes = Buffer.concat([keyOf('key'), anyOf(list)])
  let most = 0
  const check = (moreBytes: number) => {
    most = Math.max(most, moreBytes)
    if (moreBytes > 3 * MIB) throw new RowsTooLarge()
  }
  expect(() => create({ check }).append(new WireCursor(bytes), 0, bytes.length)).toThrow(RowsTooLarge)
  // A buffer checks when it grows, up to twice its size.
  expect(most).toBeLessThan(6 * MIB)
})
