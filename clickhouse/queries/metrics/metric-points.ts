import type { ClickHouseSettings } from '@clickhouse/client'
import { MIB } from '../../../schemas/units.ts'
import type { BoundCondition } from '../../select.ts'
import { attributeText } from '../attributes/attribute-text.ts'

/** Selects points. An undefined field selects all. */
export interface PointsFilter {
  readonly workspaceId: string
  readonly surfaceId: string | undefined
  /** If empty, points without a service. */
  readonly serviceName: string | undefined
  /** Start of the range of their times, Unix ns, inclusive. */
  readonly fromNano: bigint
  /** End of the range, exclusive. */
  readonly toNano: bigint
}

/**
 * Returns the condition on the points of a filter. ClickHouse carries its condition on the time over to the hour in the primary
 * key (clickhouse/migrations/0004_metrics.sql).
 */
export function pointsCondition({ workspaceId, surfaceId, serviceName, ...range }: PointsFilter): BoundCondition {
  const conditions = [
    'workspace_id = {workspaceId: String}',
    'time_unix_nano >= {fromNano: UInt64}',
    'time_unix_nano < {toNano: UInt64}',
    ...(surfaceId === undefined ? [] : ['surface_id = {surfaceId: String}']),
    ...(serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
  ]
  const times = { fromNano: String(range.fromNano), toNano: String(range.toNano) }
  return { sql: conditions.join(' AND '), params: { workspaceId, surfaceId, serviceName, ...times } }
}

/** Condition that a point has a value: bit 0 of OTLP's flags states that nothing was recorded. */
export const IS_RECORDED = 'bitAnd(flags, 1) = 0'

/** Buckets of points, for quantiles. */
export interface BucketColumns {
  /** Columns of a point, which are compared with those of the point before. */
  readonly compared: Readonly<Record<string, string>>
  /** Its bounds. Points with others are another series. */
  readonly bounds: string | undefined
  /** Condition that a cumulative series has begun again, in addition to those of all series. */
  readonly isReset: string
  /** Columns of the change of the buckets. */
  readonly changes: Readonly<Record<string, string>>
}

const bounds = 'if(explicit_bounds[-1] = inf, arrayFilter(bound -> bound != inf, explicit_bounds), explicit_bounds)'

/** Columns of the buckets of histograms. Some senders name the end of the last bucket, which is infinite in any case. */
export const BUCKETS = {
  /** The finite ends. */
  bounds,
  /** One more than there are bounds. */
  counts: `
    if(explicit_bounds[-1] = inf,
       arrayPushBack(arraySlice(bucket_counts, 1, length(${bounds})), arraySum(arraySlice(bucket_counts, length(${bounds}) + 1))),
       bucket_counts)`,
  /** Returns bounds as Prometheus writes them. */
  boundTexts: (of = bounds): string =>
    `arrayMap(bound -> transform(toString(bound), ['-inf', 'nan'], ['-Inf', 'NaN']), ${of})`,
} as const

/** Points that a read of some metrics may read. */
const POINTS_READ_MAX = 10_000_000

/** Settings of reads of points. A read over one of these limits fails with ClickHouse's code 158, 307 or 396. */
export const POINTS_SETTINGS: ClickHouseSettings = {
  max_rows_to_read: String(POINTS_READ_MAX),
  max_result_bytes: String(8 * MIB),
  result_overflow_mode: 'throw',
  // Tuples are arrays.
  output_format_json_named_tuples_as_objects: 0,
}

/** Returns the column of a label, whose `keyPattern` is bound to `param`. It is empty if the point does not have the label. */
export function labelColumn(label: string, param: string): string {
  if (label === 'service.name') return "CAST(service_name, 'String')"
  if (label === 'surface.id') return 'surface_id'
  return attributeText(`{${param}: String}`)
}
