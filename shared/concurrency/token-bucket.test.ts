import { expect, it } from 'vitest'
import { MINUTE_MS } from '../../schemas/units.ts'
import { TokenBucket, TokenBuckets } from './token-bucket.ts'

it('refills the bucket of an owner over its time, after its debt is paid', () => {
  let nowMs = 0
  const buckets = new TokenBuckets({ capacity: 20_000, refillMs: 60_000 }, () => nowMs)
  const hasSome = (owner: string) => buckets.of(owner).left > 0
  expect(hasSome('a')).toBe(true)
  buckets.of('a').take(19_999)
  expect(hasSome('a')).toBe(true)
  buckets.of('a').take(20_001)
  expect(hasSome('a')).toBe(false)
  expect(hasSome('b')).toBe(true)
  nowMs = MINUTE_MS
  expect(hasSome('a')).toBe(false)
  nowMs = 60_001
  expect(hasSome('a')).toBe(true)
  nowMs = 10 * MINUTE_MS
  buckets.of('a').take(20_000)
  expect(hasSome('a')).toBe(false)
})

it('refuses an amount until it is refilled, and one over the capacity until the bucket is full', () => {
  let nowMs = 0
  const bucket = new TokenBucket({ capacity: 4_000, refillMs: 2_000 }, () => nowMs)
  expect(bucket.waitMs(4_000)).toBe(0)
  bucket.take(4_000)
  expect([bucket.waitMs(1), bucket.waitMs(1_000), bucket.waitMs(9_000)]).toEqual([0.5, 500, 2_000])
  nowMs = 500
  expect([bucket.waitMs(1_000), bucket.waitMs(1_001)]).toEqual([0, 0.5])
  nowMs = MINUTE_MS
  expect([bucket.left, bucket.waitMs(9_000)]).toEqual([4_000, 0])
})

it('has what was given back', () => {
  const bucket = new TokenBucket({ capacity: 2, refillMs: 1_000 }, () => 0)
  bucket.take(2)
  bucket.giveBack(1)
  expect(bucket.left).toBe(1)
})
