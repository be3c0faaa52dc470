import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { describe, expect, it } from 'vitest'
import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { AnyValueSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import { appendAnyValue, MAX_NESTING, ValueType } from './any-value.ts'
import { TRUNCATED } from './refusal.ts'
import { WireCursor } from './wire.ts'

type Init = MessageInitShape<typeof AnyValueSchema>

const bytesOf = (value: Init) => toBinary(AnyValueSchema, create(AnyValueSchema, value))
const string = (value: string): Init => ({ value: { case: 'stringValue', value } })

/** Type code and text of an AnyValue message. */
function read(...pieces: Uint8Array[]): [number, string] {
  const bytes = Buffer.concat(pieces)
  const target = new GrowingBuffer()
  const type = appendAnyValue(target, new WireCursor(bytes), 0, bytes.length)
  const prefix = target.length > 128 ? 2 : 1
  return [type, target.bytes.toString('utf8', prefix, target.length)]
}

/** `[[[…]]]` */
function nested(depth: number): Uint8Array {
  let bytes: Uint8Array = new Uint8Array()
  for (let i = 0; i < depth; i++) {
    const list = new BinaryWriter().tag(1, 2).bytes(bytes).finish()
    bytes = new BinaryWriter()
      .tag(5, 2)
      .bytes(i === 0 ? new Uint8Array() : list)
      .finish()
  }
  return bytes
}

describe('an AnyValue', () => {
  it.each<[Init, number, string]>([
    [{}, ValueType.empty, ''],
    [string(''), ValueType.string, ''],
    [string('é "quoted"'), ValueType.string, 'é "quoted"'],
    [{ value: { case: 'boolValue', value: false } }, ValueType.bool, 'false'],
    [{ value: { case: 'intValue', value: -(2n ** 63n) } }, ValueType.int, '-9223372036854775808'],
    [{ value: { case: 'doubleValue', value: 3 } }, ValueType.double, '3'],
    [{ value: { case: 'doubleValue', value: -0 } }, ValueType.double, '-0'],
    [{ value: { case: 'doubleValue', value: NaN } }, ValueType.double, 'NaN'],
    [{ value: { case: 'bytesValue', value: Uint8Array.of(0, 255, 16) } }, ValueType.bytes, 'AP8Q'],
    [{ value: { case: 'arrayValue', value: {} } }, ValueType.array, '[]'],
    [
      {
        value: {
          case: 'arrayValue',
          value: {
            values: [
              string('a\n"\\\u0001é'),
              { value: { case: 'intValue', value: 2n ** 63n - 1n } },
              { value: { case: 'doubleValue', value: 2 } },
              { value: { case: 'doubleValue', value: -Infinity } },
              { value: { case: 'bytesValue', value: Uint8Array.of(1) } },
              {},
              { value: { case: 'boolValue', value: true } },
            ],
          },
        },
      },
      ValueType.array,
      '["a\\n\\"\\\\\\u0001é",9223372036854775807,2.0,"-Infinity","AQ==",null,true]',
    ],
    [
      { value: { case: 'kvlistValue', value: { values: [{ key: 'a', value: string('b') }, { key: 'a' }, {}] } } },
      ValueType.kvlist,
      '{"a":"b","a":null,"":null}',
    ],
  ])('value %# has a type and a text', (value, type, text) => {
    expect(read(bytesOf(value))).toEqual([type, text])
  })

  it('uses the last of several members', () => {
    const int = bytesOf({ value: { case: 'intValue', value: 7n } })
    expect(read(int, bytesOf(string('a')), bytesOf(string('b')))).toEqual([ValueType.string, 'b'])
    expect(read(bytesOf(string('a')), int)).toEqual([ValueType.int, '7'])
  })

  it('joins an array in pieces unless another member is between them', () => {
    const array = (text: string) => bytesOf({ value: { case: 'arrayValue', value: { values: [string(text)] } } })
    expect(read(array('a'), array('b'), array('c'))).toEqual([ValueType.array, '["a","b","c"]'])
    expect(read(array('a'), bytesOf(string('x')), array('b'), array('c'))).toEqual([ValueType.array, '["b","c"]'])
    expect(read(array('a'), new BinaryWriter().tag(99, 0).uint32(1).finish(), array('b'))[1]).toBe('["a","b"]')
  })

  it('treats a member of another wire type as an unknown field', () => {
    expect(read(new BinaryWriter().tag(1, 0).uint32(5).tag(3, 2).string('x').finish())).toEqual([ValueType.empty, ''])
  })

  it(`is base64 of its message where it is nested more than ${MAX_NESTING} deep`, () => {
    const around = (inner: string) => `${'['.repeat(MAX_NESTING)}${inner}${']'.repeat(MAX_NESTING)}`
    expect(read(nested(MAX_NESTING))[1]).toBe(around(''))
    expect(read(nested(MAX_NESTING + 1))[1]).toBe(around('""'))
    expect(read(nested(MAX_NESTING + 2))[1]).toBe(around('"CgIqAA=="'))
    const inner = JSON.parse(read(nested(1_000))[1].slice(MAX_NESTING, -MAX_NESTING))
    // After tag and length of the member.
    expect(Buffer.from(inner, 'base64')).toEqual(Buffer.from(nested(1_000 - MAX_NESTING)).subarray(3))
  })

  it('is refused when a list within it reaches past its end', () => {
    const array = bytesOf({ value: { case: 'arrayValue', value: { values: [string('abc')] } } })
    array[3] = 0x7f
    expect(() => read(array)).toThrow(TRUNCATED)
  })

  it('keeps invalid UTF-8 in text and replaces it in JSON', () => {
    const invalid = new BinaryWriter().tag(1, 2).bytes(Uint8Array.of(0x61, 0xff)).finish()
    const target = new GrowingBuffer()
    appendAnyValue(target, new WireCursor(Buffer.from(invalid)), 0, invalid.length)
    expect([...target.written()]).toEqual([2, 0x61, 0xff])
    const list = new BinaryWriter().tag(5, 2).bytes(new BinaryWriter().tag(1, 2).bytes(invalid).finish()).finish()
    expect(read(list)[1]).toBe('["a\ufffd"]')
  })
})
