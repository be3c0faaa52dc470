import { describe, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { leastCpuMs } from '../../../test/support/least-cpu-ms.ts'
import { createSpansBatch } from './spans.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }
const SIZE = 8 * MIB
/** 64 MiB of it are the largest payload there is; a worker that stands still for seconds loses its locks. */
const MAX_MS = 1_500

const IDS = Buffer.from([0x0a, 16, ...Array(16).fill(1), 0x12, 8, ...Array(8).fill(2)])

function field(tag: number, content: Buffer): Buffer {
  const length: number[] = []
  for (let rest = content.length; rest > 0 || length.length === 0; rest >>>= 7) length.push((rest & 0x7f) | 0x80)
  length[length.length - 1] = (length.at(-1) as number) & 0x7f
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

function many(...unit: number[]): Buffer {
  return Buffer.alloc(Math.floor(SIZE / unit.length) * unit.length, Buffer.from(unit))
}

const inSpan = (content: Buffer) => field(0x0a, field(0x12, field(0x12, Buffer.concat([IDS, content]))))
const inAttribute = (content: Buffer) => inSpan(field(0x4a, content))

/** Nested arrays, each in two pieces, with a large value in the innermost one. */
function splitAtEveryLevel(levels: number): Buffer {
  let value = field(0x0a, Buffer.alloc(SIZE, 'a'))
  for (let i = 0; i < levels; i++)
    value = Buffer.concat([field(0x2a, field(0x0a, value)), Buffer.from([0x2a, 2, 0x0a, 0])])
  return inAttribute(field(0x12, value))
}

describe('a payload made to be slow', () => {
  it.each<[string, Buffer]>([
    ['empty resource spans', many(0x0a, 0)],
    ['empty scopes', many(0x0a, 2, 0x12, 0)],
    ['empty spans', field(0x0a, field(0x12, many(0x12, 0)))],
    ['spans of their own resource and scope', many(0x0a, 4, 0x12, 2, 0x12, 0)],
    ['pieces of a resource', field(0x0a, many(0x0a, 2, 0x10, 1))],
    ['empty attributes', inSpan(many(0x4a, 0))],
    ['pieces of one value', inAttribute(many(0x12, 2, 0x10, 1))],
    ['pieces of many values', inSpan(many(0x4a, 8, 0x12, 2, 0x10, 1, 0x12, 2, 0x10, 1))],
    ['pieces of one array', inAttribute(field(0x12, many(0x2a, 2, 0x0a, 0)))],
    ['pieces of many arrays', inSpan(many(0x4a, 10, 0x12, 8, 0x2a, 2, 0x0a, 0, 0x2a, 2, 0x0a, 0))],
    ['exceptions', inSpan(many(0x5a, 11, 0x12, 9, ...Buffer.from('exception')))],
    ['unknown fields', inSpan(many(0xa8, 0x7f, 0))],
  ])('of %s is read within the limits of time and memory', (_, body) => {
    const batch = createSpansBatch()
    const append = () => {
      batch.reset()
      const result = batch.append(ORIGIN, body)
      expect(result.ok || result.reason).toBeOneOf([true, 'no_records'])
    }
    expect(leastCpuMs(append, MAX_MS)).toBeLessThan(MAX_MS)
    expect(batch.bytes).toBeLessThan(10 * SIZE)
  })

  it('of nested pieces is refused before they multiply', () => {
    const body = splitAtEveryLevel(60)
    const refuse = () =>
      expect(createSpansBatch().append(ORIGIN, body)).toEqual({ ok: false, reason: 'too_many_pieces' })
    expect(leastCpuMs(refuse, MAX_MS)).toBeLessThan(MAX_MS)
    expect(createSpansBatch().append(ORIGIN, splitAtEveryLevel(3)).ok).toBe(true)
  })
})
