import { DAY_MS } from '../../schemas/units.ts'
import { invalid, type Outcome } from './outcome.ts'

/** A range of time in Unix ms. The end is exclusive. */
export interface TimeRange {
  readonly fromMs: number
  readonly toMs: number
}

/** Bounds of the ranges of an operation. */
interface RangeBounds {
  /** Length of a range without a start. */
  readonly defaultMs: number
  readonly daysMax: number
  /** Times before and after these are taken for them, because ClickHouse knows none. */
  readonly minMs?: number
  readonly maxMs?: number
}

/** A time within the range of nanoseconds in 64 bits. */
const MAX_MS = Date.UTC(2200, 0, 1)

/** Returns the requested range, which ends now by default. Refuses one that is empty or too long. */
export function readTimeRange(
  { from, to }: { readonly from?: string | undefined; readonly to?: string | undefined },
  nowMs: number,
  { defaultMs, daysMax, minMs = 0, maxMs = MAX_MS }: RangeBounds,
): Outcome<TimeRange> {
  const bounded = (ms: number) => Math.min(Math.max(ms, minMs), maxMs)
  const toMs = bounded(to === undefined ? nowMs : Date.parse(to))
  const fromMs = bounded(from === undefined ? toMs - defaultMs : Date.parse(from))
  if (fromMs >= toMs) return invalid('from must be before "to", which is now unless given')
  if (toMs - fromMs <= daysMax * DAY_MS) return { ok: true, value: { fromMs, toMs } }
  return invalid(`from must be at most ${daysMax} days before "to", which is now unless given`)
}
