import { describe, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { leastCpuMs } from '../../../test/support/least-cpu-ms.ts'
import { createMetricsBatch } from './metrics.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 } as never
const SIZE = 8 * MIB
/** 64 MiB of it are the largest payload there is; a worker that stands still for seconds loses its locks. */
const MAX_MS = 1_500

function field(tag: number, content: Buffer): Buffer {
  const length: number[] = []
  for (let rest = content.length; rest > 0 || length.length === 0; rest >>>= 7) length.push((rest & 0x7f) | 0x80)
  length[length.length - 1] = (length.at(-1) as number) & 0x7f
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

function many(...unit: number[]): Buffer {
  return Buffer.alloc(Math.floor(SIZE / unit.length) * unit.length, Buffer.from(unit))
}

const inScope = (content: Buffer) => field(0x0a, field(0x12, content))
const inMetric = (content: Buffer) => inScope(field(0x12, content))
const inPoint = (kind: number, content: Buffer) => inMetric(field(kind, field(0x0a, content)))
const [GAUGE, HISTOGRAM, EXPONENTIAL, SUMMARY] = [0x2a, 0x4a, 0x52, 0x5a] as const

/** Metrics of one point, each with a name of its own. */
function manyNames(): Buffer {
  const unit = Buffer.from([0x12, 10, 0x0a, 4, 0, 0, 0, 0, GAUGE, 2, 0x0a, 0])
  const metrics = Buffer.alloc(Math.floor(SIZE / 4 / unit.length) * unit.length, unit)
  for (let at = 0, i = 0; at < metrics.length; at += unit.length) metrics.write((i++).toString(36).padStart(4), at + 4)
  return inScope(metrics)
}

describe('a payload made to be slow', () => {
  it.each<[string, Buffer]>([
    ['empty metrics', inScope(many(0x12, 0))],
    ['metrics without points', inScope(many(0x12, 2, GAUGE, 0))],
    ['metrics of their own resource and scope', many(0x0a, 6, 0x12, 4, 0x12, 2, GAUGE, 0)],
    ['pieces of one header', inMetric(many(0x0a, 0, GAUGE, 0))],
    ['kinds that replace each other', inMetric(many(GAUGE, 2, 0x0a, 0, SUMMARY, 2, 0x0a, 0))],
    ['temporalities', inMetric(field(HISTOGRAM, many(0x10, 1)))],
    ['empty attributes', inPoint(GAUGE, many(0x3a, 0))],
    ['single counts', inPoint(EXPONENTIAL, field(0x42, many(0x10, 1)))],
    ['pieces of buckets', inPoint(EXPONENTIAL, many(0x4a, 2, 0x08, 1))],
    ['empty packed fields', inPoint(HISTOGRAM, many(0x32, 0))],
    ['attributes of exemplars', inPoint(GAUGE, many(0x2a, 2, 0x3a, 0))],
    ['unknown fields', inPoint(GAUGE, many(0xa8, 0x7f, 0))],
  ])('of %s is read within the limits of time and memory', (_, body) => {
    const append = () => {
      const batch = createMetricsBatch()
      const result = batch.append(ORIGIN, body)
      expect(result.ok || result.reason).toBeOneOf([true, 'no_records'])
      expect(batch.bytes).toBeLessThan(8 * SIZE)
    }
    expect(leastCpuMs(append, MAX_MS)).toBeLessThan(MAX_MS)
  })

  it.each<[string, Buffer, string]>([
    ['empty points', inMetric(field(GAUGE, many(0x0a, 0))), 'rows_too_large'],
    ['points in pieces', inMetric(many(GAUGE, 2, 0x0a, 0)), 'rows_too_large'],
    ['names', manyNames(), 'rows_too_large'],
    ['packed counts', inPoint(EXPONENTIAL, field(0x42, field(0x12, many(0x01)))), 'rows_too_large'],
    ['empty quantiles', inPoint(SUMMARY, many(0x32, 0)), 'rows_too_large'],
    ['empty exemplars', inPoint(GAUGE, many(0x2a, 0)), 'rows_too_large'],
    ['counts', inPoint(EXPONENTIAL, field(0x42, field(0x12, Buffer.alloc(3 * SIZE, 1)))), 'rows_too_large'],
  ])('of %s is refused within the time limit', (_, body, reason) => {
    const append = () => expect(createMetricsBatch().append(ORIGIN, body)).toEqual({ ok: false, reason })
    expect(leastCpuMs(append, MAX_MS)).toBeLessThan(MAX_MS)
  })
})
