import { SpanStatsTable } from '../../clickhouse/tables/span-stats-table.ts'
import { createBufferedRows } from '../sink/buffered-rows.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { appendRecords } from './stats-records.ts'

/** Creates rows of `span_stats` from the records of the queue `span-stats`. */
export function createSpanStatsBatch(): RowBatch {
  const table = new SpanStatsTable()
  return createBufferedRows([table.buffer], (frame, body) => ({ rows: appendRecords(table, frame, body) }))
}
