import type { ClickHouseSettings } from '@clickhouse/client'

/**
 * Settings of reads of a few findings. The rows of a day are fewer than a granule has, so that they are read whole, and what is
 * left out here costs more than it finds: a pass over the condition before the other columns (a page of 50 findings takes 11.3 ms
 * with it and 8.4 without), statistics of columns, projections, which no table has, and conditions that are remembered (together
 * 6.8).
 */
export const FINDINGS_SETTINGS: ClickHouseSettings = {
  optimize_move_to_prewhere: 0,
  use_statistics: 0,
  optimize_use_projections: 0,
  use_query_condition_cache: 0,
}

/**
 * Settings of reads of one finding. They read a few granules of each day, several of them at the same time, and preparing a
 * second thread for one costs more than it saves (1 ms of 7 in the read of a trace).
 */
export const ONE_FINDING_SETTINGS: ClickHouseSettings = { ...FINDINGS_SETTINGS, max_threads: 1 }
