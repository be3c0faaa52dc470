import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { expectedTrace, type StoredRow, spanRowBinary } from '../../test/support/oracles/trace-oracle.ts'
import { loadTrace } from './load-trace.ts'

const TRACE = 'abcdef0123456789abcdef0123456789'
const NEVER = new AbortController().signal

/** Loads the trace of rows that arrive in pieces of this size. */
async function load(rows: readonly StoredRow[], limit: number, pieceBytes: number): Promise<string | undefined> {
  const bytes = spanRowBinary(rows)
  const client = {
    reads: {
      async read(_query: unknown, onChunk: (chunk: Buffer) => void) {
        for (let at = 0; at < bytes.length; at += pieceBytes) onChunk(bytes.subarray(at, at + pieceBytes))
        return ''
      },
    },
  } as unknown as ClickHouseClient
  const largeTraces = { run: () => Promise.reject(new Error('the trace is small')) }
  const key = { workspaceId: 'ws_1', traceId: TRACE }
  return (await loadTrace({ clickhouse: client, largeTraces }, key, limit, NEVER))?.toString()
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
  fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', '\u0000', '\u007f', '\u2028', 'ж', '🦊', '/') }).map(value =>
    Buffer.from(value),
  ),
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
      async (stored, limit, piece) => {
        // Rows of a span with the same arrival and digest have the same contents in ClickHouse.
        const distinct = stored.map((each, i) => ({ ...each, digest: (each.digest & ~0xffn) | BigInt(i) }))
        expect(await load(distinct, limit, piece)).toBe(JSON.stringify(expectedTrace(TRACE, distinct, limit)))
      },
    ),
    { numRuns: 500 },
  )
})

it('returns undefined for a trace without rows', async () => {
  expect(await load([], 10, 100)).toBeUndefined()
})

it('fails if the result ends within a row', async () => {
  const [stored] = fc.sample(row, 1) as [StoredRow]
  const bytes = spanRowBinary([stored])
  for (let size = 1; size < bytes.length; size++) {
    const client = {
      reads: {
        async read(_query: unknown, onChunk: (chunk: Buffer) => void) {
          onChunk(bytes.subarray(0, size))
          return ''
        },
      },
    } as unknown as ClickHouseClient
    const largeTraces = { run: () => Promise.reject(new Error('the trace is small')) }
    const loading = loadTrace({ clickhouse: client, largeTraces }, { workspaceId: 'w', traceId: TRACE }, 1, NEVER)
    await expect(loading, String(size)).rejects.toThrow(RangeError)
  }
})
