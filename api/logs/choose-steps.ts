import type { TimeSteps } from '../../clickhouse/select.ts'
import { HISTOGRAM_STEPS_MAX } from '../../schemas/http/logs.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { divideTime } from '../http/time-steps.ts'

/** Divides the time of a histogram into steps (`divideTime`). Refuses a length of which there would be too many. */
export function chooseSteps(fromMs: number, toMs: number, stepSeconds?: number): Outcome<TimeSteps> {
  const steps = divideTime(fromMs, toMs, stepSeconds)
  if (steps.count <= HISTOGRAM_STEPS_MAX) return { ok: true, value: steps }
  const least = Math.ceil((toMs - fromMs) / 1_000 / (HISTOGRAM_STEPS_MAX - 1))
  return invalid(`step must be at least ${least} for this time, because there are at most ${HISTOGRAM_STEPS_MAX} steps`)
}
