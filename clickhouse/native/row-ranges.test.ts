import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readBlock, rowsOf } from '../../test/support/oracles/read-block.ts'
import { GrowingBuffer } from './growing-buffer.ts'
import { LowCardinality } from './low-cardinality.ts'
import { rangesOf } from './row-ranges.ts'
import { column, TableBuffer } from './table-buffer.ts'

interface Row {
  readonly name: string
  readonly id: number
  readonly label: string
  readonly amount: number | null
  readonly events: readonly { readonly time: number; readonly attributes: readonly [string, string][] }[]
}

const text = fc.oneof(fc.string({ maxLength: 5 }), fc.constant('x'.repeat(200)), fc.constant('y'.repeat(20_000)))
const rows: fc.Arbitrary<Row> = fc.record({
  name: text,
  id: fc.nat(),
  label: fc.constantFrom('', 'a', 'b'),
  amount: fc.option(fc.nat(), { nil: null }),
  events: fc.array(
    fc.record({ time: fc.nat(), attributes: fc.array(fc.tuple(fc.string({ maxLength: 3 }), text), { maxLength: 3 }) }),
    { maxLength: 3 },
  ),
})

/** Has a column of each kind that tables have. */
function bufferOf(rows: readonly Row[]): TableBuffer {
  const [name, id, isNull, amount, offsets, time] = Array.from({ length: 6 }, () => new GrowingBuffer())
  const [attributeOffsets, keys, values] = Array.from({ length: 3 }, () => new GrowingBuffer())
  const label = new LowCardinality()
  if (!(name && id && isNull && amount && offsets && time && attributeOffsets && keys && values)) throw new Error()
  const buffer = new TableBuffer('rows', [
    column('name', 'String', name),
    column('id', 'UInt64', id),
    column('label', 'LowCardinality(String)', label),
    column('amount', 'Nullable(UInt64)', isNull, amount),
    column(
      'events',
      'Array(Tuple(time UInt64, attributes Map(String, String)))',
      ...[offsets, time, attributeOffsets, keys, values],
    ),
  ])
  for (const row of rows) {
    name.text(row.name)
    id.integer64(row.id)
    label.fill(label.indexOf(row.label), 1)
    isNull.u8(row.amount === null ? 1 : 0)
    amount.integer64(row.amount ?? 0)
    for (const event of row.events) {
      time.integer64(event.time)
      for (const [key, value] of event.attributes) {
        keys.text(key)
        values.text(value)
      }
      const before =
        attributeOffsets.length === 0 ? 0 : attributeOffsets.view.getUint32(attributeOffsets.length - 8, true)
      attributeOffsets.integer64(before + event.attributes.length)
    }
    offsets.integer64(time.length / 8)
    buffer.rows++
  }
  return buffer
}

const read = (block: readonly Uint8Array[]) => rowsOf(readBlock(Buffer.concat(block)))

it('divides the rows of every kind of column between blocks, each in their order', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(rows, fc.nat(2)), { minLength: 1, maxLength: 12 }), divided => {
      const buffer = bufferOf(divided.map(([row]) => row))
      const whole = read(buffer.block())
      const shards = Uint8Array.from(divided.map(([, shard]) => shard))
      for (const shard of [0, 1, 2]) {
        const ranges = rangesOf(shards, shard)
        if (ranges.count === 0) continue
        expect(read(buffer.blockOf(ranges))).toEqual(whole.filter((_, row) => shards[row] === shard))
      }
    }),
  )
})

it('refuses a type that no table has', () => {
  const buffer = new TableBuffer('rows', [column('a', 'JSON', new GrowingBuffer())])
  buffer.rows = 2
  expect(() => buffer.blockOf(rangesOf(Uint8Array.from([0, 1]), 0))).toThrow(
    'values of the type JSON cannot be divided',
  )
})
