import type { MeasuredLimits, MeasuredTime } from '../../clickhouse/queries/alerts/measured-time.ts'
import { type Instants, READINGS_MAX, SUBJECTS_MAX, timesOf } from './reading.ts'

/** The parts of what is measured that queries of a time need. */
interface Measured {
  readonly workspaceId: string
  readonly instants: Instants
}

/** Returns the time and the limits of a query that measures a number of minutes before each instant. */
export function measuredTime({ workspaceId, instants }: Measured, minutes: number): MeasuredTime & MeasuredLimits {
  const times = timesOf(instants)
  return {
    workspaceId,
    firstSeconds: (times[0] ?? instants.toMs) / 1_000,
    lastSeconds: (times.at(-1) ?? instants.toMs) / 1_000,
    stepSeconds: instants.stepMs / 1_000,
    windowSeconds: minutes * 60,
    perInstant: SUBJECTS_MAX,
    limit: READINGS_MAX,
  }
}
