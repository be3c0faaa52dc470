import { selectNewLetters, selectOverQuota, selectStoredLate } from '../../clickhouse/queries/alerts/select-faults.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { measuredTime } from './measured-time.ts'
import { type Measure, type Reading, SUBJECTS_MAX, timesOf } from './reading.ts'

const LETTER_MINUTES = 15
const QUOTA_MINUTES = 60
const LATE_MINUTES = 5

/** Measures how many requests of a surface became dead letters in fifteen minutes. */
export const measureDeadLetters: Measure = async ({ clickhouse }, of, signal) => {
  const rows = await selectNewLetters(clickhouse, measuredTime(of, LETTER_MINUTES), signal)
  return rows.map(({ at, surfaceId, value }) => ({
    atMs: at * 1_000,
    subject: { surfaceId },
    measured: { what: 'dead letters', value, threshold: 1, unit: '', minutes: LETTER_MINUTES },
  }))
}

/** Measures how many requests of a surface were refused for a quota of their key in the hour of the clock. */
export const measureQuota: Measure = async ({ clickhouse }, of, signal) => {
  const rows = await selectOverQuota(clickhouse, measuredTime(of, QUOTA_MINUTES), signal)
  return rows.map(({ at, surfaceId, value }) => ({
    atMs: at * 1_000,
    subject: { surfaceId },
    measured: { what: 'requests over a quota', value, threshold: 1, unit: '', minutes: QUOTA_MINUTES },
  }))
}

/** Measures how old the oldest request of a surface is that is not stored. */
export const measureLateness: Measure = async ({ clickhouse, settledMs }, of, signal) => {
  const reading = (atMs: number, surfaceId: string, seconds: number): Reading => ({
    atMs,
    subject: { surfaceId },
    measured: {
      what: 'age of the oldest request that is not stored',
      ...{ value: Math.round(seconds), threshold: LATE_MINUTES * 60, unit: 's', minutes: LATE_MINUTES },
    },
  })
  if (settledMs === undefined) {
    const rows = await selectStoredLate(clickhouse, measuredTime(of, LATE_MINUTES), signal)
    return rows.map(({ at, surfaceId, value }) => reading(at * 1_000, surfaceId, value))
  }
  const settled = [...(await settledMs(of.workspaceId))]
  return timesOf(of.instants).flatMap(atMs => {
    const late = settled.filter(([, ms]) => ms < atMs - LATE_MINUTES * MINUTE_MS)
    return late.slice(0, SUBJECTS_MAX).map(([surfaceId, ms]) => reading(atMs, surfaceId, (atMs - ms) / 1_000))
  })
}
