import { expect, it } from 'vitest'
import { isUnitStored, readUnit, shardsOfUnits, unitName } from './shard-units.ts'

it('names the part of a table with the number of shards, and a whole table by itself', () => {
  expect(unitName({ table: 'spans', shard: 0, shards: 1 })).toBe('spans')
  expect(unitName({ table: 'spans', shard: 1, shards: 3 })).toBe('spans@1/3')
  expect(readUnit('spans')).toEqual({ table: 'spans', shard: 0, shards: 1 })
  expect(readUnit('spans@1/3')).toEqual({ table: 'spans', shard: 1, shards: 3 })
})

it('finds a part among stored tables by itself or by its whole table', () => {
  expect(isUnitStored(['spans@1/3'], 'spans@1/3')).toBe(true)
  expect(isUnitStored(['spans@1/3'], 'spans@2/3')).toBe(false)
  expect(isUnitStored(['spans'], 'spans@2/3')).toBe(true)
})

it('finds out between how many shards rows were divided', () => {
  expect(shardsOfUnits([])).toBeUndefined()
  expect(shardsOfUnits(['spans', 'ingest_log'])).toBe(1)
  expect(shardsOfUnits(['spans@0/2', 'ingest_log@1/2'])).toBe(2)
})
