import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { TraceKey } from '../../../clickhouse/queries/traces/select-trace.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import { EXAMINED_ROWS } from '../trace-skeleton.ts'
import { loadColumns, type TraceColumns, withWholeExtent } from './load-columns.ts'

/** Dependencies of {@link useColumns}. */
export interface ColumnsDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for large traces, which bound the memory that they need. */
  readonly largeTraces: Pick<FairSlots, 'run'>
}

/** The most stored rows of a trace that is read without waiting for a slot. Its first rows are read twice if it has more. */
const SMALL_TRACE_ROWS = 16_000

/**
 * Loads the columns of a trace and returns what `use` makes of them, or undefined if nothing of the trace is retained. Those of a
 * large trace must not outlive `use`, because its slot ends with it.
 */
export async function useColumns<T>(
  { clickhouse, largeTraces }: ColumnsDeps,
  key: TraceKey,
  signal: AbortSignal,
  use: (columns: TraceColumns) => Promise<T>,
): Promise<T | undefined> {
  const small = await loadColumns(clickhouse, key, SMALL_TRACE_ROWS, signal)
  if (small === undefined) return undefined
  if (!small.truncated) return use(small)
  const useLarge = async () => {
    const large = await loadColumns(clickhouse, key, EXAMINED_ROWS, signal)
    if (large === undefined) return undefined
    return use(large.truncated ? await withWholeExtent(clickhouse, key, large, signal) : large)
  }
  return largeTraces.run(key.workspaceId, useLarge, signal)
}
