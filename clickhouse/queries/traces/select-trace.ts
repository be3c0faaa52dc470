import type { ClickHouseSettings } from '@clickhouse/client'
import { MIB } from '../../../schemas/units.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectBytes } from '../../select.ts'
import { OF_TRACE, TRACE_READ_SETTINGS } from './span-row.ts'
import { SPAN_COLUMNS, SpanRows } from './span-rows.ts'

/** Identifies a trace. */
export interface TraceKey {
  readonly workspaceId: string
  /** 32 hex digits. */
  readonly traceId: string
}

/**
 * Limit of a result in the memory of ClickHouse, in which a span has about 150 bytes. Names and messages may be long, and 32
 * requests may read at the same time: the API needs up to 170 MiB for results of this size, and 226 for twice of it. A larger
 * result is read like a large trace, of which one is read at a time.
 */
const RESULT_BYTES = 2 * MIB

const SETTINGS: ClickHouseSettings = {
  ...TRACE_READ_SETTINGS,
  max_result_bytes: String(RESULT_BYTES),
  result_overflow_mode: 'throw',
  // One thread is enough for one granule: preparing a second one took 1 ms of 7.
  max_threads: 1,
}

/**
 * Returns up to `maxRows` stored rows of a trace, including duplicates, in no order. The read is not restricted to the
 * days of a finding, because spans may arrive on another day than their exception. Fails with ClickHouse's code 396 if
 * the rows have more than `RESULT_BYTES`.
 */
export async function selectTrace(
  client: ClickHouseClient,
  key: TraceKey,
  maxRows: number,
  signal: AbortSignal,
): Promise<SpanRows> {
  const query = `SELECT ${SPAN_COLUMNS} FROM spans WHERE ${OF_TRACE} LIMIT {maxRows: UInt32} FORMAT RowBinary`
  return new SpanRows(
    await selectBytes(client, { query, params: { ...key, maxRows }, signal, settings: SETTINGS, trace: key }),
  )
}
