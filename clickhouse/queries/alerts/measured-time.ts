import type { ClickHouseSettings } from '@clickhouse/client'
import { GIB } from '../../../schemas/units.ts'

/** The instants of a measure, and the time before each of them that it is of. Unix seconds; instants are multiples of the step. */
export interface MeasuredTime {
  readonly workspaceId: string
  readonly firstSeconds: number
  readonly lastSeconds: number
  readonly stepSeconds: number
  readonly windowSeconds: number
}

/** Conditions on what is measured: values of which one is equal. Undefined leaves one out. */
export interface MeasuredConditions {
  readonly surfaces?: readonly string[] | undefined
  readonly services?: readonly string[] | undefined
  readonly environments?: readonly string[] | undefined
  readonly releases?: readonly string[] | undefined
  readonly types?: readonly string[] | undefined
}

/** Most rows of an instant and of a read. */
export interface MeasuredLimits {
  readonly perInstant: number
  readonly limit: number
}

/** Bounds of a read. A week of many services at every fifth minute takes some seconds. */
export const MEASURE_SETTINGS: ClickHouseSettings = {
  max_threads: 2,
  // A row of a day that is read at every fifth minute becomes 288 rows, all of a block at once.
  max_block_size: '8192',
  max_execution_time: 30,
  timeout_before_checking_execution_speed: 0,
  max_rows_to_read: '200000000',
  max_memory_usage: String(GIB),
  max_bytes_before_external_group_by: String(GIB / 4),
}

/**
 * Returns the parameters of the fragments below: those of the time, the beginning of the first window, and the length of the
 * buckets in which rows are counted before they are counted for each instant.
 */
export function timeParams(time: MeasuredTime): Record<string, unknown> {
  const { firstSeconds, windowSeconds } = time
  return { ...time, fromSeconds: Math.max(0, firstSeconds - windowSeconds), bucketSeconds: bucketOf(time) }
}

/** Instants and ends of windows are ends of buckets. */
function bucketOf({ stepSeconds, windowSeconds }: MeasuredTime): number {
  let [a, b] = [stepSeconds, windowSeconds]
  while (b > 0) [a, b] = [b, a % b]
  return a
}

/** Returns the beginning of the bucket of a time in Unix seconds, as Unix seconds. */
export function bucketAt(seconds: string): string {
  return `toUInt32(intDiv(${seconds}, {bucketSeconds: UInt32}) * {bucketSeconds: UInt32})`
}

/** Returns the instants, one a row, whose windows contain a bucket. */
export function instantsOf(bucket: string): string {
  return `arrayJoin(${instantsBetween(`${bucket} + {bucketSeconds: UInt32}`, `${bucket} + {windowSeconds: UInt32}`)})`
}

/** Returns the array of the instants from one time to another, in Unix seconds. */
export function instantsBetween(from: string, to: string): string {
  const first = `greatest({firstSeconds: UInt32}, intDiv(${from} + {stepSeconds: UInt32} - 1, {stepSeconds: UInt32}) * {stepSeconds: UInt32})`
  return `range(toUInt32(${first}), toUInt32(least({lastSeconds: UInt32}, ${to}) + 1), toUInt32({stepSeconds: UInt32}))`
}

/** The order of readings: at each instant the largest values, named `value`, of `at`. */
export const LARGEST_VALUES = 'ORDER BY at, value DESC LIMIT {perInstant: UInt32} BY at LIMIT {limit: UInt32}'

/** Returns the conditions on the columns that a table has, each with ` AND ` before it. */
export function conditionsOn(
  columns: Readonly<Partial<Record<keyof MeasuredConditions, string>>>,
  conditions: MeasuredConditions,
): string {
  return Object.entries(columns)
    .filter(([name]) => conditions[name as keyof MeasuredConditions] !== undefined)
    .map(([name, column]) => ` AND ${column} IN {${name}: Array(String)}`)
    .join('')
}
