import { type ActivityRow, selectActivity } from '../../clickhouse/queries/alerts/select-activity.ts'
import { HOUR_S } from '../../schemas/units.ts'
import { type Measure, type MeasureDeps, READINGS_MAX, type Reading, SUBJECTS_MAX, timesOf } from './reading.ts'

const PAGE = 1_000

/**
 * Measures for how long surfaces were sent nothing, of those that exist and were sent something before, as far as that is retained.
 * A surface with requests that are not stored yet was sent something.
 */
export const measureSilence: Measure = async (deps, { workspaceId, rule, instants }, signal) => {
  const times = timesOf(instants)
  const first = times[0]
  if (rule.silent === undefined || first === undefined) return []
  const { minutes } = rule.silent
  // Earlier requests are counted by the hour.
  const fromSeconds = Math.floor((first / 1_000 - minutes * 60) / HOUR_S) * HOUR_S
  const activity = await selectActivity(
    deps.clickhouse,
    {
      ...{ workspaceId, surfaces: rule.surfaces, fromSeconds, toSeconds: instants.toMs / 1_000 },
      ...{ gapSeconds: minutes * 60, limit: 10 * SUBJECTS_MAX },
    },
    signal,
  )
  const silent = activity.flatMap(row => {
    const times = silentTimes(row, instants.toMs / 1_000, minutes)
    return times.length === 0 ? [] : [{ surfaceId: row.surfaceId, times }]
  })
  if (silent.length === 0) return []
  const [existing, settled] = await Promise.all([existingSurfaces(deps, workspaceId), deps.settledMs?.(workspaceId)])
  const readings: Reading[] = []
  for (const { surfaceId, times: ranges } of silent
    .filter(({ surfaceId: id }) => existing.has(id))
    .slice(0, SUBJECTS_MAX)) {
    for (const atMs of times.filter(time => ranges.some(([from, to]) => time >= from && time <= to))) {
      if ((settled?.get(surfaceId) ?? atMs) < atMs) continue
      const measured = { what: 'requests received', value: 0, threshold: 1, unit: '', minutes }
      readings.push({ atMs, subject: { surfaceId }, measured })
    }
  }
  return readings.slice(0, READINGS_MAX)
}

/** Returns the times at which a surface was sent nothing for a number of minutes, Unix ms. */
function silentTimes(row: ActivityRow, toSeconds: number, minutes: number): [fromMs: number, toMs: number][] {
  const { wasSentBefore, first, last, gaps } = row
  const borders: (readonly [number, number])[] = [...gaps]
  if (wasSentBefore === 1) borders.push([Number.NEGATIVE_INFINITY, first === 0 ? Number.POSITIVE_INFINITY : first])
  if (last !== 0) borders.push([last, Number.POSITIVE_INFINITY])
  return borders.flatMap(([before, after]): [number, number][] => {
    // Something arrived in the minute that begins then.
    const fromMs = Math.max(0, (before + 60 + minutes * 60) * 1_000)
    const toMs = Math.min(after, toSeconds) * 1_000
    return fromMs > toMs ? [] : [[fromMs, toMs]]
  })
}

async function existingSurfaces({ directory }: MeasureDeps, workspaceId: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>()
  for (let after: { createdAtMs: number; id: string } | undefined; ; ) {
    const page = await directory.surfaces(workspaceId, { limit: PAGE, after })
    for (const { id } of page) ids.add(id)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return ids
    after = { createdAtMs: Date.parse(last.createdAt), id: last.id }
  }
}
