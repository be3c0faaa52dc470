import { METRICS_RANGE_DAYS_MAX, STEPS_MAX } from '../../schemas/http/metrics.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { readTimeRange, type TimeRange } from '../http/time-range.ts'

/** Whole steps of a range. */
export interface Steps extends TimeRange {
  readonly stepSeconds: number
  readonly count: number
}

/** Returns the requested range, by default the last hour. Refuses one that is empty or too long. */
export function timeRange(
  query: { from?: string | undefined; to?: string | undefined },
  nowMs: number,
): Outcome<TimeRange> {
  return readTimeRange(query, nowMs, { defaultMs: HOUR_MS, daysMax: METRICS_RANGE_DAYS_MAX })
}

const DEFAULT_STEPS_SECONDS = [60, 300, 900, 3_600, 10_800]
const DEFAULT_STEPS_MAX = 300

/** Widens a range to whole steps, which begin at multiples of their length since 1970. Refuses too many. */
export function stepsOf(range: TimeRange, stepSeconds: number | undefined): Outcome<Steps> {
  if (stepSeconds === undefined) {
    const steps = DEFAULT_STEPS_SECONDS.map(seconds => widen(range, seconds))
    return { ok: true, value: steps.find(({ count }) => count <= DEFAULT_STEPS_MAX) ?? (steps.at(-1) as Steps) }
  }
  const steps = widen(range, stepSeconds)
  if (steps.count <= STEPS_MAX) return { ok: true, value: steps }
  return invalid(
    `step divides the range into ${steps.count} steps, of which there may be ${STEPS_MAX}: request longer steps or a shorter range`,
  )
}

function widen({ fromMs, toMs }: TimeRange, stepSeconds: number): Steps {
  const stepMs = stepSeconds * 1_000
  const first = Math.floor(fromMs / stepMs)
  const end = Math.ceil(toMs / stepMs)
  return { stepSeconds, count: end - first, fromMs: first * stepMs, toMs: end * stepMs }
}

/** Returns the range as points have their times, in Unix ns. */
export function inNanos({ fromMs, toMs }: TimeRange): { fromNano: bigint; toNano: bigint } {
  return { fromNano: BigInt(fromMs) * 1_000_000n, toNano: BigInt(toMs) * 1_000_000n }
}
