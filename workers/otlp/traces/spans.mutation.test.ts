import { toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { leastCpuMs } from '../../../test/support/least-cpu-ms.ts'
import { rounds } from '../../../test/support/length.ts'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { traceRequest } from '../../../test/support/payloads/otlp-traces.ts'
import { type Random, seededRandom } from '../../../test/support/payloads/scramble-message.ts'
import type { RowBatch } from '../../sink/row-batch.ts'
import { createSpansBatch } from './spans.ts'

const PAYLOADS = rounds(100_000)
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }
/** After each of this many payloads the rows themselves are read and compared. */
const READ_EVERY = 100
const MAX_MS = 100

describe('a batch of spans', () => {
  it(`accepts or refuses ${PAYLOADS} broken payloads as a whole, quickly, and without reading past their end`, () => {
    const seeds = fc.sample(traceRequest, { numRuns: 300, seed: 42 })
    const originals = seeds
      .map(request => toBinary(ExportTraceServiceRequestSchema, request))
      .filter(b => b.length > 40)
    const random = seededRandom(42)
    // The same payload in two surroundings: what is read past its end shows in the rows or in the verdict.
    const batches = [createSpansBatch(), createSpansBatch()] as const
    const outcomes = new Map<string, number>()
    const slow: Buffer[] = []
    for (let i = 0; i < PAYLOADS; i++) {
      const body = mutate(originals[i % originals.length] as Uint8Array, random)
      const [first, second] = batches
      const before = first.rows + first.bytes
      const startedAt = performance.now()
      const result = first.append(ORIGIN, within(body, 0x00))
      if (performance.now() - startedAt > MAX_MS) slow.push(body)
      const verdict = JSON.stringify(result)
      if (JSON.stringify(second.append(ORIGIN, within(body, 0xff))) !== verdict) {
        expect.fail(`what surrounds the payload changes its verdict: ${body.toString('hex')}`)
      }
      if (!result.ok && first.rows + first.bytes !== before) {
        expect.fail(`something of a refused payload remains: ${body.toString('hex')}`)
      }
      const outcome = result.ok ? 'ok' : result.reason
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      if (i % READ_EVERY === READ_EVERY - 1) {
        expect(blockBytes(first).equals(blockBytes(second))).toBe(true)
        readTables(first) // throws unless every block is whole
        for (const batch of batches) batch.reset()
      }
    }
    expect([...outcomes.keys()].sort()).toEqual(['invalid_tag', 'ok', 'overlong_varint', 'truncated'])
    for (const count of outcomes.values()) expect(count).toBeGreaterThan(PAYLOADS / 1_000)
    // The machine may pause; a payload that is slow by itself is slow again.
    for (const body of slow)
      expect(leastCpuMs(() => createSpansBatch().append(ORIGIN, body), MAX_MS)).toBeLessThan(MAX_MS)
  })
})

function blockBytes(batch: RowBatch): Buffer {
  return Buffer.concat(batch.tables().flatMap(({ block }) => block))
}

/** A few bits flipped, bytes replaced by those that make lengths long, or the end cut off. */
function mutate(original: Uint8Array, random: Random): Buffer {
  const body = Buffer.from(original)
  const places = 1 + Math.floor(random() * 3)
  for (let i = 0; i < places; i++) {
    const at = Math.floor(random() * body.length)
    const kind = random()
    if (kind < 0.5) body[at] = (body[at] as number) ^ (1 << Math.floor(random() * 8))
    else if (kind < 0.7) body[at] = [0x00, 0x7f, 0x80, 0xff][Math.floor(random() * 4)] as number
    else if (kind < 0.8) body.fill(0xff, at, Math.min(body.length, at + Math.floor(random() * 12)))
    else if (kind < 0.9) body.copy(body, at, Math.floor(random() * body.length))
    else return body.subarray(0, at)
  }
  return body
}

/** The body amid bytes of another value, as a request is in its payload. */
function within(body: Buffer, surroundings: number): Buffer {
  const held = Buffer.alloc(body.length + 64, surroundings)
  body.copy(held, 32)
  return held.subarray(32, 32 + body.length)
}
