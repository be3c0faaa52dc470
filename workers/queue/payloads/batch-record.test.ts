import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  decodeRecord,
  encodeRecord,
  type Formation,
  isSameFormation,
  labelAt,
  RefusedCollector,
  refusedOf,
  refusedWithin,
} from './batch-record.ts'

const formed: Formation = { decoder: 1, tables: { spans: 3 }, digest: 7, refused: { a: { truncated: [0, 0] } } }

it('finds the label of each refused request of each job, and takes little room for a flood', () => {
  const outcomes = fc.array(fc.option(fc.constantFrom('truncated', 'bad_compression'), { nil: undefined }))
  fc.assert(
    fc.property(outcomes, outcomes, (a, b) => {
      const collector = new RefusedCollector()
      for (const [jobId, labels] of Object.entries({ a, b }))
        for (const [index, label] of labels.entries()) if (label) collector.add(jobId, index, label)
      const stored = JSON.parse(JSON.stringify(collector.requests))
      expect(a.map((_, index) => labelAt(stored, 'a', index))).toEqual(a)
      expect(b.map((_, index) => labelAt(refusedOf(stored, ['b']), 'b', index))).toEqual(b)
      expect(labelAt(refusedOf(stored, ['b']), 'a', 0)).toBeUndefined()
    }),
  )
  const flood = new RefusedCollector()
  for (let index = 0; index < 100_000; index++) flood.add('a', index, 'truncated')
  expect(flood.requests).toEqual({ a: { truncated: [0, 99_999] } })
})

it('keeps the label of each refused request when its payload is split', () => {
  const outcomes = fc.array(fc.constantFrom(undefined, undefined, 'truncated', 'bad_compression'))
  fc.assert(
    fc.property(outcomes, fc.nat(12), fc.nat(12), (labels, first, count) => {
      const collector = new RefusedCollector()
      for (const [index, label] of labels.entries()) if (label) collector.add('a', index, label)
      const again = new RefusedCollector()
      const part = labels.slice(first, first + count)
      for (const [index, label] of part.entries()) if (label) again.add('a', index, label)
      expect(refusedWithin(collector.requests.a, first, count)).toEqual(again.requests.a ?? {})
    }),
  )
})

it('reads what it has written', () => {
  const record = { jobIds: ['a', 'b'], storedTables: ['spans'], formed, unstored: formed.refused, burnedId: 'x' }
  expect(decodeRecord(encodeRecord(record))).toEqual(record)
})

it('distinguishes formations by tables, rows of requests and refused requests, not by the version of the decoder', () => {
  const read = decodeRecord(encodeRecord({ jobIds: ['a'], storedTables: [], formed })).formed as Formation
  expect(isSameFormation(read, { ...formed, decoder: 2 })).toBe(true)
  expect(isSameFormation(read, { ...formed, digest: 8 })).toBe(false)
  expect(isSameFormation(read, { ...formed, tables: { spans: 4 } })).toBe(false)
  expect(isSameFormation(read, { ...formed, refused: {} })).toBe(false)
})
