import type { Redis } from 'ioredis'
import { type ArrivalSurfaces, selectArrivedWorkspaces } from '../../clickhouse/queries/findings/select-arrivals.ts'
import { DAY_S, MINUTE_MS, SECOND_MS } from '../../schemas/units.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { writeOccasions } from '../../shared/directory/occasions.ts'
import { upkeepKeys } from '../../shared/directory/record.ts'
import { type Command, commitIf, type Guard } from '../../shared/directory/transaction.ts'
import { type FindOccasionsDeps, findOccasions } from './find-occasions.ts'

/** A surface, and the times before which what it was sent is stored, Unix ms of Redis. */
interface SettledSurface {
  readonly workspaceId: string
  readonly surfaceId: string
  /** Exceptions of spans and log records. */
  readonly exceptionsMs: number
  /** Failed spans, which are judged later. Undefined if that is not known yet. */
  readonly failuresMs: number | undefined
}

/** Dependencies of watching. */
interface WatchDeps extends Omit<FindOccasionsDeps, 'called'> {
  /** Redis of the directory. */
  readonly redis: Redis
  readonly directory: FindOccasionsDeps['directory'] & Pick<Directory, 'alerts' | 'alertingWorkspaces' | 'surfaceIds'>
  readonly settled: (surfaces: readonly { workspaceId: string; surfaceId: string }[]) => Promise<SettledSurface[]>
  readonly assertElected: () => Promise<void>
}

/** Windows begin and end at multiples of this time. */
const WINDOW_MS = 2 * SECOND_MS
/** Longest time that is looked at at once. After a pause, several follow one another. */
const LONGEST_MS = 10 * MINUTE_MS
const TIMEOUT_MS = 30_000
/** A status that has ended is remembered for as long after the last of its workspace. */
const CALLED_S = 90 * DAY_S

/** A time of one surface that is to be looked at, and the field of its end. */
interface Window {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly field: string
  /** Undefined for a surface that is looked at for the first time. */
  readonly fromMs: number | undefined
  readonly toMs: number
  readonly ofFailures: boolean
}

/**
 * Finds the occasions of each surface of a workspace with receivers, up to the time before which everything is stored. The end of a
 * time, its occasions and what they end are recorded in one step, so that a crash repeats a time or has recorded it.
 */
export async function watchArrivals(deps: WatchDeps): Promise<void> {
  const windows = await dueWindows(deps)
  if (windows.length === 0) return
  await begin(
    deps,
    windows.filter(({ fromMs }) => fromMs === undefined),
  )
  for (const group of groupsOf(windows.filter(({ fromMs }) => fromMs !== undefined))) {
    await deps.assertElected()
    await watchGroup(deps, group)
  }
}

/**
 * Begins to watch surfaces: at the last change of the receivers, but at most a minute ago. So nothing is missed that a new surface
 * was sent at once, or that arrived right after the first receiver was added.
 */
async function begin({ redis, directory }: WatchDeps, windows: readonly Window[]): Promise<void> {
  for (const [workspaceId, own] of Map.groupBy(windows, window => window.workspaceId)) {
    const changedMs = Date.parse((await directory.alerts(workspaceId))?.changedAt ?? '')
    const fields = own.flatMap(({ field, toMs }) => {
      const fromMs = Math.max(toMs - MINUTE_MS, changedMs || toMs)
      return [field, Math.min(toMs, Math.floor(fromMs / WINDOW_MS) * WINDOW_MS)]
    })
    await redis.hset(upkeepKeys.watched, ...fields)
  }
}

/** Windows of one time, of all workspaces. */
interface Group extends Pick<ArrivalSurfaces, 'fromMs' | 'toMs' | 'ofFailures'> {
  readonly windows: readonly Window[]
}

/** Surfaces are usually watched up to the same time. */
function groupsOf(windows: readonly Window[]): Group[] {
  const grouped = Map.groupBy(windows, ({ fromMs, toMs, ofFailures }) => `${fromMs} ${toMs} ${ofFailures}`)
  return [...grouped.values()].map(some => {
    const [{ fromMs = 0, toMs, ofFailures }] = some as [Window]
    return { fromMs, toMs, ofFailures, windows: some }
  })
}

async function dueWindows({ redis, directory, settled }: WatchDeps): Promise<Window[]> {
  const surfaces: { workspaceId: string; surfaceId: string }[] = []
  for (const workspaceId of await directory.alertingWorkspaces()) {
    for (const surfaceId of await directory.surfaceIds(workspaceId)) surfaces.push({ workspaceId, surfaceId })
  }
  if (surfaces.length === 0) return []
  const wanted = (await settled(surfaces)).flatMap(({ workspaceId, surfaceId, exceptionsMs, failuresMs }) => {
    const field = `${workspaceId}/${surfaceId}`
    const ends = [
      { field, untilMs: exceptionsMs, ofFailures: false },
      { field: `${field}/failures`, untilMs: failuresMs, ofFailures: true },
    ]
    return ends.flatMap(({ untilMs, ...end }) =>
      untilMs === undefined ? [] : [{ ...end, untilMs, workspaceId, surfaceId }],
    )
  })
  const known = await redis.hmget(upkeepKeys.watched, ...wanted.map(({ field }) => field))
  return wanted.flatMap(({ untilMs, ...window }, i) => {
    const fromMs = known[i] == null ? undefined : Number(known[i])
    const settledMs = Math.floor(untilMs / WINDOW_MS) * WINDOW_MS
    const toMs = fromMs === undefined ? settledMs : Math.min(settledMs, fromMs + LONGEST_MS)
    return fromMs === undefined || toMs > fromMs ? [{ ...window, fromMs, toMs }] : []
  })
}

async function watchGroup(deps: WatchDeps, { windows, ...time }: Group): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const arrived = await selectArrivedWorkspaces(deps.clickhouse, time, signal)
  for (const [workspaceId, own] of Map.groupBy(windows, window => window.workspaceId)) {
    const surfaceIds = own.map(({ surfaceId }) => surfaceId)
    const called = (id: string, findingIds: readonly string[]) => deps.redis.hmget(upkeepKeys.called(id), ...findingIds)
    const { occasions, ended } = arrived.has(workspaceId)
      ? await findOccasions({ ...deps, called }, { ...time, workspaceId, surfaceIds }, signal)
      : { occasions: [], ended: [] }
    const key = upkeepKeys.called(workspaceId)
    const remembered: Command[] =
      ended.length === 0
        ? []
        : [
            ['HSET', key, ...ended.flat()],
            ['EXPIRE', key, CALLED_S],
          ]
    const fields = own.flatMap(({ field, toMs }) => [field, toMs])
    // Another process that is elected meanwhile has recorded the same occasions.
    const guards = own.map(({ field }): Guard => ['HGET', upkeepKeys.watched, String(time.fromMs), field])
    const commands: Command[] = [['HSET', upkeepKeys.watched, ...fields], ...remembered, ...writeOccasions(occasions)]
    if (!(await commitIf(deps.redis, { guards, commands }))) return
  }
}
