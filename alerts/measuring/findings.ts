import { selectBusiestMinutes, selectBusyMinutes } from '../../clickhouse/queries/alerts/select-spikes.ts'
import { selectSpreading } from '../../clickhouse/queries/alerts/select-spreading.ts'
import { type AlertRule, DEFAULT_SPIKING } from '../../schemas/records/alerts.ts'
import { DAY_S, HOUR_S } from '../../schemas/units.ts'
import { measuredTime } from './measured-time.ts'
import { type Measure, READINGS_MAX, SUBJECTS_MAX, timesOf } from './reading.ts'

const MINUTES = 5
const BUCKET_S = MINUTES * 60
const DAYS = 7

const conditionsOf = ({ surfaces, services, environments, releases, types }: AlertRule) => ({
  ...{ surfaces, services, environments, releases, types },
})

/**
 * Measures how often findings occur in the five minutes of the clock that are in progress, or have just ended. They are compared
 * with the busiest five minutes of the same hour of the seven days before.
 */
export const measureSpiking: Measure = async ({ clickhouse, directory }, { workspaceId, rule, instants }, signal) => {
  const times = timesOf(instants)
  const [first, last] = [times[0], times.at(-1)]
  if (first === undefined || last === undefined) return []
  const { times: factor, atLeast } = rule.spiking ?? DEFAULT_SPIKING
  const counted = { workspaceId, merges: await directory.findingMerges(workspaceId), conditions: conditionsOf(rule) }
  const fromSeconds = bucketOf(first)
  const now = { ...counted, fromSeconds, toSeconds: bucketOf(last) + BUCKET_S }
  const busy = await selectBusyMinutes(clickhouse, { ...now, atLeast, limit: READINGS_MAX }, signal)
  const findingIds = [...new Set(busy.map(({ id }) => id))].slice(0, SUBJECTS_MAX)
  const hours = [...new Set(busy.flatMap(({ bucket }) => hoursBefore(bucket)))]
  const before = {
    ...counted,
    fromSeconds: Math.max(0, fromSeconds - (DAYS * DAY_S + HOUR_S)),
    toSeconds: bucketOf(last),
  }
  const busiest = new Map(
    (await selectBusiestMinutes(clickhouse, { ...before, findingIds, hours }, signal)).map(row => [
      `${row.id} ${row.hour}`,
      Number(row.busiest),
    ]),
  )
  const known = new Set(findingIds)
  const atBucket = Map.groupBy(
    busy.filter(({ id }) => known.has(id)),
    ({ bucket }) => bucket,
  )
  return times.flatMap(atMs =>
    (atBucket.get(bucketOf(atMs)) ?? []).flatMap(({ id, bucket, occurrences }) => {
      const usual = Math.max(0, ...hoursBefore(bucket).map(hour => busiest.get(`${id} ${hour}`) ?? 0))
      const [value, threshold] = [Number(occurrences), Math.max(atLeast, factor * usual)]
      if (value < threshold) return []
      return [
        {
          atMs,
          subject: { findingId: id },
          measured: { what: 'occurrences', value, threshold, unit: '', minutes: MINUTES },
        },
      ]
    }),
  )
}

/** Returns the beginning of the five minutes in which the time before an instant is, in Unix seconds. */
function bucketOf(atMs: number): number {
  return Math.floor((atMs / 1_000 - 1) / BUCKET_S) * BUCKET_S
}

/** Returns the same hour of each of the days before, in hours since 1970. */
function hoursBefore(bucket: number): number[] {
  return Array.from({ length: DAYS }, (_, i) => Math.floor((bucket - (i + 1) * DAY_S) / HOUR_S))
}

/** Measures in the sessions of how many people findings occur. */
export const measureSpreading: Measure = async ({ clickhouse, directory }, { rule, ...of }, signal) => {
  if (rule.spreading === undefined) return []
  const { people, minutes } = rule.spreading
  const merges = await directory.findingMerges(of.workspaceId)
  const spreading = { ...measuredTime(of, minutes), merges, conditions: conditionsOf(rule), people }
  const rows = await selectSpreading(clickhouse, spreading, signal)
  return rows.map(({ at, id, value }) => ({
    atMs: at * 1_000,
    subject: { findingId: id },
    measured: { what: 'people', value: Number(value), threshold: people, unit: '', minutes },
  }))
}
