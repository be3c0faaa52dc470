import { ClickHouseError } from '@clickhouse/client'
import { expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { MIB } from '../../../schemas/units.ts'
import { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import { loadFirstSpans, loadLargeTrace, loadSmallTrace, WHOLE_TRACE, type WholeTrace } from './load-all-spans.ts'
import { useSpans } from './load-spans.ts'

const KEY = { workspaceId: 'ws_1', traceId: 'ab'.repeat(16) }
const NEVER = new AbortController().signal
const idOf = (number: number) => number.toString(16).padStart(16, '0')

/** A store of spans with a status message of this size, which refuses results as ClickHouse does. */
function storeOf(count: number, messageBytes: number, isSlotted = true) {
  const spanIds = Array.from({ length: count }, (_, i) => idOf(i + 1))
  const limits: number[] = []
  let held = 0
  const slots = new FairSlots({ slots: 1, waiting: 64 })
  const read = async (
    { query, params, settings }: { query: string; params: Record<string, unknown>; settings: Record<string, unknown> },
    onChunk: (chunk: Buffer) => void,
  ) => {
    if (query.includes('RowBinary')) {
      onChunk(Buffer.from(spanIds.slice(0, params.limit as number).join(''), 'hex'))
      return ''
    }
    const asked = (params.spanIds as string[] | undefined) ?? spanIds.slice(0, params.limit as number)
    if (query.includes('byteSize')) {
      const sizes = asked.map(spanId => ({ spanId, rows: '1', bytes: String(messageBytes) }))
      onChunk(Buffer.from(JSON.stringify(sizes)))
      return ''
    }
    const limit = Number(settings.max_result_bytes)
    limits.push(limit)
    if (limit > 2 * MIB && isSlotted) expect(held).toBe(1)
    if (asked.length * messageBytes > limit) {
      throw new ClickHouseError({ message: 'the result is too large', code: '396', type: 'TOO_MANY_ROWS_OR_BYTES' })
    }
    const message = 'x'.repeat(messageBytes)
    const packed = { origin: '', attributeKeys: '', attributeValues: '', details: '' }
    const row = { statusMessage: message, receivedAtMs: '1', digest: '1', ...packed }
    for (const spanId of asked) onChunk(Buffer.from(`${JSON.stringify({ spanId, ...row })}\n`))
    return ''
  }
  const deps = {
    clickhouse: { reads: { read } } as unknown as ClickHouseClient,
    largeTraces: {
      run: <T>(owner: string, task: () => Promise<T>, signal: AbortSignal) =>
        slots.run(
          owner,
          async () => {
            held++
            try {
              return await task()
            } finally {
              held--
            }
          },
          signal,
        ),
    },
  }
  return { deps, spanIds, limits }
}

const shown = (whole: WholeTrace | undefined) => whole && { spans: whole.rows.length, truncated: whole.truncated }

it('counts every text of a span, so that long status messages end a trace at its limit of bytes', async () => {
  const { deps } = storeOf(5_000, 150_000, false)
  const whole = await loadLargeTrace(deps.clickhouse, KEY, NEVER)
  expect(shown(whole)).toEqual({ spans: Math.floor(WHOLE_TRACE.bytes / 150_050), truncated: true })
})

it('reads a small trace at once, and leaves a larger one', async () => {
  const small = storeOf(500, 1_000)
  const found = await loadSmallTrace(small.deps.clickhouse, KEY, NEVER)
  expect(shown(found as WholeTrace)).toEqual({ spans: 500, truncated: false })
  const large = storeOf(500, 3_000)
  expect(await loadSmallTrace(large.deps.clickhouse, KEY, NEVER)).toBe('large')
  expect([...small.limits, ...large.limits]).toEqual([MIB, MIB])
})

it('reads the first spans of one of many traces, as far as they fit', async () => {
  const { deps, limits } = storeOf(5_000, 10_000)
  const limitsOfTrace = { spans: 200, bytes: 500_000 }
  const found = await loadFirstSpans(deps.clickhouse, KEY, limitsOfTrace, NEVER)
  expect(shown(found)).toEqual({ spans: 49, truncated: true })
  expect(Math.max(...limits)).toBeLessThanOrEqual(2 * MIB)
})

it('reads requested spans in a slot if they are large', async () => {
  const small = storeOf(20, 1_000)
  const count = ({ spans }: { readonly spans: readonly unknown[] }) => spans.length
  expect(await useSpans(small.deps, KEY, small.spanIds, count, NEVER)).toBe(20)
  expect(small.limits).toEqual([MIB])
  const large = storeOf(20, 150_000)
  expect(await useSpans(large.deps, KEY, large.spanIds, count, NEVER)).toBe(20)
  expect(large.limits).toEqual([MIB, 4 * MIB])
})

it('finds nothing of a trace without spans', async () => {
  const { deps } = storeOf(0, 0)
  expect(await loadSmallTrace(deps.clickhouse, KEY, NEVER)).toBeUndefined()
  expect(await loadLargeTrace(deps.clickhouse, KEY, NEVER)).toBeUndefined()
})
