import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HOUR_S } from '../../schemas/units.ts'
import { bottlenecksOf } from './bottlenecks.ts'
import { fitModel } from './cost-model.ts'
import { measuredPoints } from './example-points.ts'
import { type Inputs, STANDARD_INPUTS } from './inputs.ts'
import { makePlan, type Plan } from './make-plan.ts'
import { pricePlan } from './price-plan.ts'

const model = fitModel(measuredPoints)
const COMPRESSED = 55 / 507

function inputs(different: Partial<Inputs>): Inputs {
  return { ...STANDARD_INPUTS, ...different }
}

/** A load that can be computed by hand: a million uniform spans a second all day, plain, at most half of each resource. */
const BY_HAND = inputs({
  'spans-per-day': 86_400e6,
  'peak-factor': 1,
  'realistic-share': 0,
  'gzip-share': 0,
  utilisation: 0.5,
  'retention-days': 10,
  'backlog-minutes': 1,
  'redis-memory': 10,
  'redis-cores': 2,
  'redis-replicas': 0,
  'clickhouse-replicas': 1,
  'clickhouse-cores': 16,
  'clickhouse-memory': 64,
  'clickhouse-disk': 1e6,
  zones: 1,
  network: 1_000,
})

describe('makePlan', () => {
  it('returns what one computes by hand', () => {
    const { edges, workers, redis, clickhouse, traffic, bytes } = makePlan(model, BY_HAND)
    // 0.5 CPU seconds of the edge a second, of which one may use half.
    expect(edges).toBe(1)
    // A minute of a million spans of 400 bytes is 24 GB, with 30 % of maxmemory kept free 34.3 GB: four nodes of 10 GB.
    expect(redis.memoryNeeded).toBeCloseTo(24 / 0.7)
    expect(redis).toMatchObject({ nodes: 4, partitions: 8, diskOfNode: 30 })
    // Eight partitions insert four times a second each: 31,250 rows.
    expect(clickhouse.rowsPerInsert).toBeCloseTo(1e6 / 32)
    expect(clickhouse.insertsPerSecond).toBeCloseTo(32)
    expect(clickhouse.windowMemory).toBeCloseTo(32 * 0.49)
    // 1.5 CPU seconds a second for the rows, 32 inserts of 10 ms each.
    expect(workers).toBe(Math.ceil((1.5 + 0.32) / 0.5))
    // 2 for the rows and 32 × 40 ms for the inserts are 3.28 of the 8 cores that one node may use.
    expect(clickhouse).toMatchObject({ shards: 1, coresOfNode: 16 })
    expect(clickhouse.stored).toBeCloseTo((25 * 86_400e6 * 10) / 1e9)
    // Sent to another machine, an insert is compressed.
    expect(traffic['workers to ClickHouse']).toBeCloseTo(410e6 * COMPRESSED)
    expect(bytes.body).toBeCloseTo(370)
  })

  it('needs no less of anything for more spans, and no more on faster cores', () => {
    fc.assert(
      fc.property(anyInputs, fc.double({ min: 1, max: 100, noNaN: true }), (one, factor) => {
        const more = makePlan(model, { ...one, 'spans-per-day': one['spans-per-day'] * factor })
        const plan = makePlan(model, one)
        const faster = makePlan(model, { ...one, 'core-speed': one['core-speed'] * factor })
        expect(more.edges).toBeGreaterThanOrEqual(plan.edges)
        expect(memoryOf(more)).toBeGreaterThanOrEqual(memoryOf(plan))
        expect(more.clickhouse.stored).toBeGreaterThanOrEqual(plan.clickhouse.stored)
        expect(more.traffic['clients to edges']).toBeGreaterThanOrEqual(plan.traffic['clients to edges'])
        expect(faster.edges).toBeLessThanOrEqual(plan.edges)
        expect(faster.redis.nodes).toBeLessThanOrEqual(plan.redis.nodes)
      }),
    )
  })

  it('uses no resource for more than its share', () => {
    fc.assert(
      fc.property(anyInputs, one => {
        const plan = makePlan(model, one)
        fc.pre(plan.exceeded.length === 0)
        for (const { rate } of bottlenecksOf(plan, one)) expect(rate).toBeGreaterThanOrEqual(plan.peakRate * (1 - 1e-6))
      }),
    )
  })

  it('enlarges ClickHouse nodes where more shards would not help, and says why', () => {
    const plan = makePlan(model, inputs({ 'spans-per-day': 1e11, 'clickhouse-cores': 2, 'clickhouse-memory': 8 }))
    expect(plan.enlarged).toEqual([
      expect.stringMatching(/^ClickHouse nodes have \d+ cores: the inserts alone need/),
      expect.stringMatching(/^ClickHouse nodes have \d+ GB: the deduplication windows alone need/),
    ])
  })

  it('says where one installation is not enough', () => {
    const plan = makePlan(model, inputs({ 'spans-per-day': 1e13 }))
    expect(plan.redis.memoryOfNode).toBeGreaterThan(32)
    expect(plan.redis.partitions).toBe(plan.redis.nodes)
    expect(plan.exceeded).toEqual([
      expect.stringMatching(/^\d+ partitions, of at most 64$/),
      expect.stringMatching(/^\d+ shards, of at most 24$/),
      expect.stringMatching(/^\d+ inserts a second into each shard .*, of at most 100$/),
      expect.stringMatching(/^\d+ cores of a ClickHouse node for inserts alone, of at most \d+$/),
    ])
    expect(makePlan(model, STANDARD_INPUTS).exceeded).toEqual([])
  })

  it('chooses the smallest nodes that a small load needs, and larger ones before more of them', () => {
    const small = makePlan(model, inputs({ 'spans-per-day': 1e6 }))
    expect(small).toMatchObject({ edges: 1, edgeCores: 0.25, workers: 1, workerCores: 0.5 })
    expect(small.redis).toMatchObject({ nodes: 1, coresOfNode: 0.5, memoryOfNode: 1 })
    expect(small.clickhouse).toMatchObject({ shards: 1, coresOfNode: 1, memoryOfNode: 4 })
    // A payload is inserted as a whole, so that there are no more inserts than payloads.
    expect(small.clickhouse.rowsPerInsert).toBe(200)
    expect(small.clickhouse.insertsPerSecond).toBeCloseTo(1e6 / 86_400 / 200)
    const larger = makePlan(model, inputs({ 'spans-per-day': 2e9 }))
    expect(larger.clickhouse).toMatchObject({ shards: 1, coresOfNode: 16 })
    expect(larger.clickhouse.stored / larger.clickhouse.memoryOfNode).toBeLessThanOrEqual(100)
    const set = makePlan(model, inputs({ 'spans-per-day': 1e6, 'clickhouse-cores': 8, 'redis-memory': 16 }))
    expect(set.clickhouse).toMatchObject({ coresOfNode: 8, memoryOfNode: 32 })
    expect(set.redis.memoryOfNode).toBe(16)
  })

  it('needs no more of any resource than it may use, where nodes are small', () => {
    // It was refused, because the cores that inserts need were rounded up to 1, and those that there are down to 0.
    const plan = makePlan(model, inputs({ 'spans-per-day': 1e8, 'clickhouse-cores': 2, 'retention-days': 7 }))
    expect(plan.exceeded).toEqual([])
    const tiny = makePlan(model, inputs({ 'spans-per-day': 1e10, 'clickhouse-cores': 0.01 }))
    expect(tiny.exceeded).toEqual([
      expect.stringMatching(/^\d+ shards, of at most 24$/),
      expect.stringMatching(/^[\d.]+ cores of a ClickHouse node for inserts alone, of at most 0\.\d\d$/),
    ])
  })

  it('scales bytes, and nothing else, with the size of a span', () => {
    const plan = makePlan(model, BY_HAND)
    const larger = makePlan(model, { ...BY_HAND, 'bytes-per-span': 740 })
    expect(larger.bytes.body).toBeCloseTo(740)
    expect(larger.bytes.stored).toBeCloseTo(50)
    expect(larger.cpu.edge).toBe(plan.cpu.edge)
  })
})

const memoryOf = ({ redis }: Plan) => redis.nodes * redis.memoryOfNode

const anyInputs = fc
  .record({
    'spans-per-day': fc.double({ min: 1e3, max: 1e13, noNaN: true }),
    'peak-factor': fc.double({ min: 1, max: 10, noNaN: true }),
    'spans-per-payload': fc.integer({ min: 1, max: 1_000 }),
    'realistic-share': fc.double({ min: 0, max: 1, noNaN: true }),
    'gzip-share': fc.double({ min: 0, max: 1, noNaN: true }),
    utilisation: fc.double({ min: 0.1, max: 1, noNaN: true }),
    'backlog-minutes': fc.integer({ min: 0, max: 600 }),
    'clickhouse-cores': fc.integer({ min: 1, max: 64 }),
  })
  .map(inputs)

describe('pricePlan', () => {
  it('returns what one computes by hand', () => {
    const prices = { 'core-hour': 0.1, 'memory-gb-hour': 0.01, 'disk-gb-month': 0.2, 'object-gb-month': 0.05 }
    const priced = inputs({ ...BY_HAND, ...prices, backups: 2 })
    const { lines, amounts, dollarsPerMonth, dollarsPerBillionSpans } = pricePlan(makePlan(model, priced), priced)
    const [edge, , redis] = lines
    expect(edge?.dollarsPerMonth).toBeCloseTo(73)
    // Two cores with 4 GB, 6 GB more, and a disk of 30 GB, four times.
    expect(redis?.dollarsPerMonth).toBeCloseTo(4 * (0.26 * 730 + 30 * 0.2))
    expect(amounts.map(amount => amount.dollarsPerMonth)).toEqual([expect.closeTo(2 * 21_600 * 0.05), 0])
    const sum = [...lines, ...amounts].reduce((total, each) => total + each.dollarsPerMonth, 0)
    expect(dollarsPerMonth).toBeCloseTo(sum)
    // A million a second for 730 hours are 2,628 billion.
    expect(dollarsPerBillionSpans).toBeCloseTo(sum / 2_628)
  })

  it('charges nothing between zones where there is one, and copies to replicas in full', () => {
    const plan = makePlan(model, BY_HAND)
    const between = (different: Partial<Inputs>) =>
      pricePlan(plan, { ...BY_HAND, ...different }).amounts[1]?.dollarsPerMonth ?? 0
    expect(between({})).toBe(0)
    const spans = 1e6 * 730 * HOUR_S
    expect(between({ zones: 2 })).toBeCloseTo((spans * ((400 + 390 + 410 * COMPRESSED) / 2) * 0.02) / 1e9)
    expect(between({ zones: 2, 'redis-replicas': 1 }) - between({ zones: 2 })).toBeCloseTo((spans * 400 * 0.02) / 1e9)
  })
})
