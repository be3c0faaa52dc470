import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { expect, it } from 'vitest'
import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'
import { shardOfTrace, shardsOfRows } from './shards-of-rows.ts'

it('hashes workspace and trace as ClickHouse does, and the further column of rows without a trace', () => {
  const [traceId, variantId, workspaceId] = [new GrowingBuffer(), new GrowingBuffer(), new LowCardinality()]
  const buffer = new TableBuffer('exceptions', [
    column('workspace_id', 'LowCardinality(String)', workspaceId),
    column('variant_id', 'FixedString(16)', variantId),
    column('trace_id', 'FixedString(16)', traceId),
  ])
  const zeros = Buffer.alloc(16)
  const repeated = randomBytes(16)
  const rows = Array.from({ length: 200 }, (_, i) => ({
    workspace: `ws_${'x'.repeat(i % 7 === 0 ? 200 : i % 3)}`,
    trace: i % 5 === 0 ? zeros : i % 2 === 0 ? repeated : randomBytes(16),
    variant: randomBytes(16),
  }))
  for (const { workspace, trace, variant } of rows) {
    workspaceId.fill(workspaceId.indexOf(workspace), 1)
    for (const byte of trace) traceId.u8(byte)
    for (const byte of variant) variantId.u8(byte)
    buffer.rows++
  }
  const expected = rows.map(({ workspace, trace, variant }) => {
    const key = trace === zeros ? variant : trace
    return crc32(Buffer.concat([Buffer.from(workspace), key])) % 3
  })
  expect([...shardsOfRows(buffer, 3)]).toEqual(expected)
  for (const [i, { workspace, trace }] of rows.entries()) {
    if (trace === zeros) continue
    expect(shardOfTrace({ workspaceId: workspace, traceId: trace.toString('hex') }, 3)).toBe(expected[i])
  }
})
