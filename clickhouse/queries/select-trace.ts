import type { ClickHouseClient } from '../client.ts'
import { selectRows } from '../select.ts'
import { OF_TRACE, SPAN_ROW, type SpanRow } from './span-row.ts'

export interface TraceKey {
  readonly workspaceId: string
  /** 32 hex digits. */
  readonly traceId: string
}

/** Names and messages may be long: few rows may still be more than this process should take in. */
const RESULT_BYTES = 64 * 1024 * 1024

/**
 * Up to `maxRows` stored rows of a trace, duplicates among them, in no order. Not restricted to the days the finding
 * was seen on: a trace's spans may arrive on another day than its exception. Fails with ClickHouse's code 396 when the rows are over 64 MiB.
 */
export function selectTrace(
  client: ClickHouseClient,
  key: TraceKey,
  maxRows: number,
  signal: AbortSignal,
): Promise<SpanRow[]> {
  return selectRows<SpanRow>(client, {
    query: `SELECT ${SPAN_ROW} FROM spans WHERE ${OF_TRACE} LIMIT {maxRows: UInt32}`,
    params: { ...key, maxRows },
    signal,
    settings: { max_result_bytes: String(RESULT_BYTES), result_overflow_mode: 'throw' },
  })
}
