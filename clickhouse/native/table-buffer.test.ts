import { describe, expect, it } from 'vitest'
import { readBlock, rowsOf } from '../../test/support/oracles/read-block.ts'
import { GrowingBuffer } from './growing-buffer.ts'
import { LowCardinality } from './low-cardinality.ts'
import { column, TableBuffer } from './table-buffer.ts'

function createTable() {
  const service = new LowCardinality()
  const name = new GrowingBuffer()
  const offsets = new GrowingBuffer()
  const keys = new GrowingBuffer()
  const values = new GrowingBuffer()
  const types = new GrowingBuffer()
  const table = new TableBuffer('things', [
    column('service', 'LowCardinality(String)', service),
    column('name', 'String', name),
    column('attributes', 'Map(String, String)', offsets, keys, values),
    column('attribute_types', 'Array(UInt8)', offsets, types),
  ])
  return {
    table,
    append(row: { service: string; name: string; attributes: [string, string][] }) {
      service.fill(service.indexOf(row.service), 1)
      name.text(row.name)
      for (const [key, value] of row.attributes) {
        keys.text(key)
        values.text(value)
        types.u8(1)
      }
      offsets.u64(types.length, 0)
      table.rows++
    },
    read: () => rowsOf(readBlock(Buffer.concat(table.block()))),
  }
}

const shop = { service: 'shop', name: 'GET /', attributes: [['a', '1']] as [string, string][] }
const cart = { service: 'cart', name: 'é'.repeat(9_000), attributes: [] }
const rowOf = ({ service, name, attributes }: typeof shop) => ({
  service,
  name: Buffer.from(name).toString('latin1'),
  attributes,
  attribute_types: attributes.map(() => 1),
})

describe('a table buffer', () => {
  it('writes its rows as one block', () => {
    const { table, append, read } = createTable()
    for (const row of [shop, cart, shop]) append(row)
    expect(read()).toEqual([shop, cart, shop].map(rowOf))
    expect(table.bytes).toBeGreaterThan(18_000)
  })

  it('rewinds to what was kept, including dictionary keys', () => {
    const { table, append, read } = createTable()
    append(shop)
    table.measure()
    table.keepMeasured()
    append(cart)
    append({ ...cart, service: 'other' })
    table.rewind()
    append({ ...shop, service: 'third' })
    expect(table.rows).toBe(2)
    expect(read()).toEqual([shop, { ...shop, service: 'third' }].map(rowOf))
    expect(Buffer.concat(table.block()).includes('other')).toBe(false)
  })

  it('is empty after a reset and accepts rows again', () => {
    const { table, append, read } = createTable()
    append(cart)
    table.reset()
    append(shop)
    expect(read()).toEqual([rowOf(shop)])
  })

  it.each([1, 255, 256, 65_535, 65_536])('uses the smallest index width for %i keys', keyCount => {
    const service = new LowCardinality()
    const table = new TableBuffer('things', [column('service', 'LowCardinality(String)', service)])
    const texts = Array.from({ length: keyCount }, (_, i) => `service ${i}`)
    for (const text of texts) service.fill(service.indexOf(text), 1)
    table.rows = keyCount
    expect(readBlock(Buffer.concat(table.block())).columns[0]?.values).toEqual(texts)
  })
})
