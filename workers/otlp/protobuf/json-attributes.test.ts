import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { expect, it } from 'vitest'
import { LowCardinality } from '../../../clickhouse/native/low-cardinality.ts'
import { MIB } from '../../../schemas/units.ts'
import { JsonAttributes } from './json-attributes.ts'
import { TRUNCATED } from './refusal.ts'
import { WireCursor } from './wire.ts'

type Value = string | bigint | Uint8Array

/** Encodes a KeyValue whose value is a string (text or raw bytes) or an int. */
function pair(key: string, value: Value): Uint8Array {
  const any = new BinaryWriter()
  if (typeof value === 'bigint') any.tag(3, 0).int64(value)
  else any.tag(1, 2).bytes(typeof value === 'string' ? Buffer.from(value) : value)
  return new BinaryWriter().tag(1, 2).string(key).tag(2, 2).bytes(any.finish()).finish()
}

function attributesOf(...pairs: (readonly [string, Value])[]): JsonAttributes {
  const attributes = new JsonAttributes()
  for (const [key, value] of pairs) {
    const bytes = Buffer.from(pair(key, value))
    attributes.add(new WireCursor(bytes), 0, bytes.length)
  }
  return attributes
}

/** Returns the value of the column with this index. */
function textAt({ dictionary }: LowCardinality, index: number): string {
  const bytes = Buffer.from(
    dictionary.keys.written().subarray(dictionary.startOf(index), dictionary.startOf(index + 1)),
  )
  let start = 0
  while ((bytes[start] as number) >= 0x80) start++
  return bytes.toString('utf8', start + 1)
}

function jsonOf(...pairs: (readonly [string, Value])[]): string {
  const column = new LowCardinality()
  return textAt(column, attributesOf(...pairs).indexIn(column))
}

it('writes one object with sorted keys and the last value of each', () => {
  expect(jsonOf()).toBe('{}')
  expect(jsonOf(['b', 'x"'], ['a', -5n], ['b', 'é']), '').toBe('{"a":-5,"b":"é"}')
})

it('refuses a malformed value, also of a key that is repeated', () => {
  const malformed = new BinaryWriter().tag(1, 2).string('a').tag(2, 2).bytes(Uint8Array.of(0x0a, 0x7f)).finish()
  const attributes = attributesOf()
  for (const bytes of [malformed, pair('a', 'b')].map(bytes => Buffer.from(bytes))) {
    attributes.add(new WireCursor(bytes), 0, bytes.length)
  }
  expect(() => attributes.indexIn(new LowCardinality())).toThrow(TRUNCATED)
})

it('finds the same attributes again in any order', () => {
  const column = new LowCardinality()
  const index = attributesOf(['a', '1'], ['b', '2']).indexIn(column)
  expect(attributesOf(['c', '3']).indexIn(column)).toBe(index + 1)
  expect(attributesOf(['b', '2'], ['a', '1']).indexIn(column)).toBe(index)
  expect(column.dictionary.length).toBe(index + 2)
})

it('writes long texts in pieces as JSON.stringify writes them whole', () => {
  const texts = [
    'a'.repeat(200_000),
    `${'"\\é€😀\n'.repeat(30_000)}x`,
    `x${'€'.repeat(50_000)}`,
    `xx${'😀'.repeat(40_000)}`,
  ]
  for (const text of texts) expect(jsonOf(['k', text]) === JSON.stringify({ k: text })).toBe(true)
})

it('replaces invalid UTF-8 in pieces as in the whole text', () => {
  const continuations = Buffer.alloc(150_000, 0x80)
  const cutShort = Buffer.from('\xe2\x82'.repeat(60_000), 'latin1')
  for (const bytes of [continuations, cutShort, Buffer.concat([Buffer.from('€'), continuations, cutShort])]) {
    expect(jsonOf(['k', bytes]) === JSON.stringify({ k: bytes.toString() })).toBe(true)
  }
})

it('cuts the text of a promoted column and keeps the attribute', () => {
  const attributes = attributesOf(
    ['service.name', 'é'.repeat(600)],
    ['n', -(2n ** 63n)],
    ['bad', Buffer.alloc(9, 0xff)],
  )
  expect(attributes.text('service.name', 1_023)).toBe('é'.repeat(511))
  expect(attributes.text('n', 256)).toBe('-9223372036854775808')
  expect(attributes.text('bad', 9)).toBe('\ufffd'.repeat(3))
  expect(attributes.text('absent', 9)).toBe('')
})

it('has a long text in memory once, in the column', () => {
  const column = new LowCardinality()
  const attributes = attributesOf(['service.name', 'a'.repeat(30 * MIB)])
  const before = process.memoryUsage()
  const index = attributes.indexIn(column)
  const text = attributes.text('service.name', 1_024)
  const after = process.memoryUsage()
  expect(text).toBe('a'.repeat(1_024))
  expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(45 * MIB)
  expect(textAt(column, index).length).toBe(30 * MIB + '{"service.name":""}'.length)
})

it('leaves nothing behind of an object that was refused half-way', () => {
  const column = new LowCardinality()
  const first = attributesOf(['a', '1']).indexIn(column)
  const { length } = column.dictionary.keys
  column.dictionary.beginKey()
  column.dictionary.keys.rawText('{"b":')
  column.dictionary.truncate(first + 1)
  expect(column.dictionary.keys.length).toBe(length)
  const second = attributesOf(['b', '2']).indexIn(column)
  expect([textAt(column, first), textAt(column, second)]).toEqual(['{"a":"1"}', '{"b":"2"}'])
})
