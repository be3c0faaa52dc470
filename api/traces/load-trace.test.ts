import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Trace } from '../../schemas/http/traces/schemas.ts'
import { expectedTrace, type StoredRow, spanRowBinary } from '../../test/support/oracles/trace-oracle.ts'
import { loadTrace } from './load-trace.ts'

const FINDING = `fnd_${'a'.repeat(26)}`
const TRACE = 'abcdef0123456789abcdef0123456789'
const KEY = { workspaceId: 'ws_1', findingIds: [FINDING], traceId: TRACE }
const NEVER = new AbortController().signal

/** Loads a small trace, whose query returns these bytes in pieces. */
async function load(bytes: Buffer, { limit = 2_000, pieceBytes = 1_000, isOfFinding = true } = {}) {
  const client = {
    reads: {
      async read({ query }: { query: string }, onChunk: (chunk: Buffer) => void) {
        if (query.includes('FROM exceptions')) onChunk(Buffer.from(isOfFinding ? '[{"isStored":1}]' : '[]'))
        else for (let at = 0; at < bytes.length; at += pieceBytes) onChunk(bytes.subarray(at, at + pieceBytes))
        return ''
      },
    },
  } as unknown as ClickHouseClient
  const largeTraces = { run: () => Promise.reject(new Error('the trace is small')) }
  const trace = await loadTrace({ clickhouse: client, largeTraces }, KEY, limit, NEVER)
  return trace?.toString()
}

const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
/** Few ids, so that rows have parents and copies. */
const id = fc.oneof({ weight: 5, arbitrary: fc.bigInt({ min: 1n, max: 12n }) }, { weight: 1, arbitrary: u64 })
const time = fc.oneof(
  fc.bigInt({ min: 1_790_000_000_000_000_000n, max: 1_790_000_005_000_000_000n }),
  fc.bigInt({ min: 0n, max: 3_000_000_000n }),
  u64,
)
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }).map(value => Buffer.from(value)),
  fc
    .string({ unit: fc.constantFrom('a', '"', '\\', '\n', '\u0000', '\u007f', '\u2028', 'ж', '🦊', '/') })
    .map(value => Buffer.from(value)),
  fc.string({ minLength: 100, maxLength: 300 }).map(value => Buffer.from(value)),
  fc.uint8Array({ maxLength: 8 }),
  fc.constant(new Uint8Array(0)),
)
const row: fc.Arbitrary<StoredRow> = fc.record({
  spanId: id,
  parentSpanId: fc.oneof(fc.constant(0n), id),
  start: time,
  end: time,
  receivedAt: fc.bigInt({ min: 1_790_000_000_000n, max: 1_790_000_000_003n }),
  digest: fc.oneof(u64, fc.bigInt({ min: 0n, max: 2n })),
  statusCode: fc.integer({ min: 0, max: 3 }),
  kind: fc.integer({ min: 0, max: 9 }),
  httpStatusCode: fc.constantFrom(0, 1, 200, 404, 32_767, 32_768, 65_535),
  name: text,
  serviceName: text,
  statusMessage: text,
  sessionId: text,
  httpRoute: text,
})

it('writes the same bytes as JSON.stringify of the trace as objects', async () => {
  const rows = fc.array(row, { minLength: 1, maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(
      rows,
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 5_000 }),
      async (stored, limit, pieceBytes) => {
        // Rows of a span with the same arrival and digest have the same contents in ClickHouse.
        const distinct = stored.map((each, i) => ({ ...each, digest: (each.digest & ~0xffn) | BigInt(i) }))
        const trace = await load(spanRowBinary(distinct), { limit, pieceBytes })
        expect(trace).toBe(JSON.stringify(expectedTrace(TRACE, distinct, limit)))
      },
    ),
    { numRuns: 500 },
  )
})

it('returns undefined for a trace without rows, and for one without the finding', async () => {
  expect(await load(Buffer.alloc(0))).toBeUndefined()
  expect(await load(spanRowBinary(fc.sample(row, 1)), { isOfFinding: false })).toBeUndefined()
})

it('fails if the result ends within a row', async () => {
  const bytes = spanRowBinary(fc.sample(row, 1))
  for (let size = 1; size < bytes.length; size++) {
    await expect(load(bytes.subarray(0, size)), String(size)).rejects.toThrow(RangeError)
  }
})

it('leaves out spans over the limit of texts, counted as they are in JSON', async () => {
  const [any] = fc.sample(row, 1) as [StoredRow]
  const empty = new Uint8Array(0)
  const spans = Array.from({ length: 10 }, (_, i) => ({
    ...any,
    spanId: BigInt(i + 1),
    parentSpanId: 0n,
    start: BigInt(i),
    name: new Uint8Array(200_000).fill(1),
    serviceName: empty,
    statusMessage: empty,
    sessionId: empty,
    httpRoute: empty,
  }))
  const trace = await load(spanRowBinary(spans), { pieceBytes: 65_536 })
  const { spans: shown, truncated } = JSON.parse(trace ?? '') as Trace
  // A control character has six bytes in JSON, so that six names fit into 8 MiB.
  expect(shown.map(({ spanId }) => Number.parseInt(spanId, 16))).toEqual([1, 2, 3, 4, 5, 6])
  expect(truncated).toBe(true)
})
