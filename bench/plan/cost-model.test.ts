import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ENDLESS_BATCH, fitModel } from './cost-model.ts'
import { measuredPoints, point } from './example-points.ts'

const LOAD = { spansPerPayload: 200, realisticShare: 0, gzipShare: 0 }

describe('fitModel', () => {
  it('finds what a span and what an insert cost in ClickHouse', () => {
    const model = fitModel(measuredPoints)
    // The example: 2 CPU seconds a million spans, and 40 CPU milliseconds an insert.
    expect(model.cpu(LOAD, ENDLESS_BATCH).clickhouse * 1e6).toBeCloseTo(2)
    expect(model.clickhouseCpuPerInsert).toBeCloseTo(0.04)
    expect(model.cpu(LOAD, { rowsPerInsert: 50_000, shards: 1 }).clickhouse * 1e6).toBeCloseTo(2 + 0.8)
  })

  it('counts an insert for each shard in ClickHouse, and a batch once in the worker', () => {
    const model = fitModel(measuredPoints)
    const cpu = (shards: number) => model.cpu(LOAD, { rowsPerInsert: 50_000, shards })
    expect(cpu(3).clickhouse * 1e6).toBeCloseTo(2 + 3 * 0.8)
    expect(cpu(3).worker).toBe(cpu(1).worker)
  })

  it('returns what was measured at a measured point', () => {
    const model = fitModel(measuredPoints)
    for (const { spansPerPayload, realistic, gzip, rowsPerInsert, ...measured } of measuredPoints) {
      const cpu = model.cpu({ spansPerPayload, realisticShare: realistic, gzipShare: gzip }, { rowsPerInsert })
      expect(cpu.edge * 1e6).toBeCloseTo(measured.edgeCpu)
      expect(cpu.redis * 1e6).toBeCloseTo(measured.redisCpu)
      expect(cpu.worker * 1e6).toBeCloseTo(measured.workerCpu)
      expect(cpu.clickhouse * 1e6).toBeCloseTo(measured.clickhouseCpu)
    }
  })

  it('costs no insert less than nothing where more inserts were cheaper', () => {
    const model = fitModel([point({}), point({ workers: 4, rowsPerInsert: 20_000, clickhouseCpu: 1 })])
    expect(model.clickhouseCpuPerInsert).toBe(0)
  })

  it('returns costs above nothing for every load', () => {
    const model = fitModel(measuredPoints)
    fc.assert(
      fc.property(anyLoad, fc.double({ min: 1, max: 1e9, noNaN: true }), (load, rowsPerInsert) => {
        for (const value of [
          ...Object.values(model.cpu(load, { rowsPerInsert, shards: 2 })),
          ...Object.values(model.bytes(load)),
        ])
          expect(value).toBeGreaterThan(0)
      }),
    )
  })

  it('costs no span less in smaller payloads', () => {
    const model = fitModel(measuredPoints)
    fc.assert(
      fc.property(anyLoad, fc.integer({ min: 1, max: 2_000 }), (load, spansPerPayload) => {
        const [small, large] = [spansPerPayload, load.spansPerPayload].toSorted((a, b) => a - b)
        const cost = (spans: number | undefined) => model.cpu({ ...load, spansPerPayload: spans ?? 1 }, ENDLESS_BATCH)
        expect(cost(small).edge).toBeGreaterThanOrEqual(cost(large).edge)
        expect(cost(small).redis).toBeGreaterThanOrEqual(cost(large).redis)
      }),
    )
  })
})

const anyLoad = fc.record({
  spansPerPayload: fc.integer({ min: 1, max: 2_000 }),
  realisticShare: fc.double({ min: 0, max: 1, noNaN: true }),
  gzipShare: fc.double({ min: 0, max: 1, noNaN: true }),
})
