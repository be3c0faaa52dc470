import type { TimeSteps } from '../../clickhouse/select.ts'
import { DAY_S } from '../../schemas/units.ts'

/** Lengths of steps that are chosen. Longer ones are whole days. */
const STEP_SECONDS = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, DAY_S],
] as const
/** Steps for which a length is chosen. There may be one more, because both ends of the time may be within steps. */
const STEPS_CHOSEN = 100

/**
 * Divides a time into steps. They begin at multiples of their length since 1970, so that the steps of two reads fit each
 * other. Without a length, the shortest is chosen of which about a hundred are enough.
 */
export function divideTime(fromMs: number, toMs: number, stepSeconds?: number): TimeSteps {
  const seconds = (toMs - fromMs) / 1_000
  const chosen = STEP_SECONDS.find(step => seconds / step <= STEPS_CHOSEN)
  const days = Math.ceil(seconds / STEPS_CHOSEN / DAY_S)
  const stepMs = (stepSeconds ?? chosen ?? days * DAY_S) * 1_000
  const startMs = Math.floor(fromMs / stepMs) * stepMs
  return { startMs, stepMs, count: Math.max(Math.ceil((toMs - startMs) / stepMs), 1) }
}
