import type { Redis } from 'ioredis'
import { type ArrivalSurfaces, selectArrivedWorkspaces } from '../../clickhouse/queries/findings/select-arrivals.ts'
import { DAY_S, MINUTE_MS, SECOND_MS } from '../../schemas/units.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { pagesOf } from '../../shared/concurrency/pages.ts'
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

/** What is settled of surfaces, and the time of Redis at which that was read. */
interface SettledSurfaces {
  readonly readAtMs: number
  readonly surfaces: readonly SettledSurface[]
}

/** Dependencies of watching. */
interface WatchDeps extends Omit<FindOccasionsDeps, 'called'> {
  /** Redis of the directory. */
  readonly redis: Redis
  readonly directory: FindOccasionsDeps['directory'] & Pick<Directory, 'alerts' | 'alertingWorkspaces' | 'surfaceIds'>
  readonly settled: (surfaces: readonly { workspaceId: string; surfaceId: string }[]) => Promise<SettledSurfaces>
  readonly assertElected: () => Promise<void>
}

/** Windows begin and end at multiples of this time. */
const WINDOW_MS = 2 * SECOND_MS
/** Time after the end of a window in which a request that was accepted before is counted in Redis. */
const AFTER_END_MS = 50
/** Time between two looks while something of the last window is not stored. */
const LATE_MS = 250
/** Longest time that is looked at at once. After a pause, several follow one another. */
const LONGEST_MS = 10 * MINUTE_MS
/** Length of a time without arrivals whose end is recorded. Each recording is an fsync. */
const QUIET_RECORDED_MS = 30 * SECOND_MS
const TIMEOUT_MS = 30_000
/** Fields of a command, and surfaces of a query. A script of Redis cannot run one with 8,000 words. */
const WORDS_AT_ONCE = 500
const WORKSPACES_AT_ONCE = 4
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
 * time, its occasions and what they end are recorded in one step, so that a crash repeats a time or has recorded it. Returns when
 * to look again, by `performance.now()`; undefined if no workspace has receivers.
 */
export async function watchArrivals(deps: WatchDeps): Promise<number | undefined> {
  const surfaces = await alertingSurfaces(deps)
  if (surfaces.length === 0) return undefined
  const readAt = performance.now()
  const settled = await deps.settled(surfaces)
  const windows = await dueWindows(deps, settled)
  await begin(
    deps,
    windows.filter(({ fromMs }) => fromMs === undefined),
  )
  // A workspace that fails again and again must not hold up the others.
  let failure: { readonly error: unknown } | undefined
  for (const group of groupsOf(windows.filter(({ fromMs }) => fromMs !== undefined))) {
    await deps.assertElected()
    await watchGroup(deps, group).catch(error => {
      failure ??= { error }
    })
  }
  if (failure !== undefined) throw failure.error
  return readAt + againMs(settled)
}

/**
 * Returns the time until another window may be settled: its end, or less if something before the last end was not stored yet. So a
 * receiver is called early, and an installation to which nothing is sent looks once in a window.
 */
function againMs({ readAtMs, surfaces }: SettledSurfaces): number {
  const endMs = Math.floor(readAtMs / WINDOW_MS) * WINDOW_MS
  const isLate = surfaces.some(({ exceptionsMs }) => exceptionsMs < endMs)
  const untilEndMs = endMs + WINDOW_MS - readAtMs + AFTER_END_MS
  return isLate ? Math.min(LATE_MS, untilEndMs) : untilEndMs
}

async function alertingSurfaces({ directory }: WatchDeps): Promise<{ workspaceId: string; surfaceId: string }[]> {
  const surfaces: { workspaceId: string; surfaceId: string }[] = []
  for (const workspaceId of await directory.alertingWorkspaces()) {
    for (const surfaceId of await directory.surfaceIds(workspaceId)) surfaces.push({ workspaceId, surfaceId })
  }
  return surfaces
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

async function dueWindows({ redis }: WatchDeps, { surfaces }: SettledSurfaces): Promise<Window[]> {
  const wanted = surfaces.flatMap(({ workspaceId, surfaceId, exceptionsMs, failuresMs }) => {
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
  const arrived = await selectArrivedWorkspaces(deps.clickhouse, time, AbortSignal.timeout(TIMEOUT_MS))
  const [quiet, others] = [[] as Window[], [] as Window[]]
  for (const window of windows) (arrived.has(window.workspaceId) ? others : quiet).push(window)
  // Most workspaces are sent nothing most of the time. A quiet time whose end is not recorded is looked at with the next one.
  const long = quiet.filter(({ fromMs = 0, toMs }) => toMs - fromMs >= QUIET_RECORDED_MS)
  for (const some of pagesOf(long, WORDS_AT_ONCE)) await record(deps.redis, some, [])
  const workspaces = Map.groupBy(others, window => window.workspaceId).values()
  const pages = [...workspaces].flatMap(own => [...pagesOf(own, WORDS_AT_ONCE)])
  await forEachConcurrently(pages, { concurrency: WORKSPACES_AT_ONCE }, own => watchWorkspace(deps, time, own))
}

/** Finds and records the occasions of surfaces of one workspace. */
async function watchWorkspace(
  deps: WatchDeps,
  time: Omit<Group, 'windows'>,
  windows: readonly Window[],
): Promise<void> {
  const workspaceId = windows[0]?.workspaceId ?? ''
  const surfaceIds = windows.map(({ surfaceId }) => surfaceId)
  const called = (id: string, findingIds: readonly string[]) => deps.redis.hmget(upkeepKeys.called(id), ...findingIds)
  const arrivals = { ...time, workspaceId, surfaceIds }
  const found = await findOccasions({ ...deps, called }, arrivals, AbortSignal.timeout(TIMEOUT_MS))
  const key = upkeepKeys.called(workspaceId)
  const remembered = [...pagesOf(found.ended, WORDS_AT_ONCE)].flatMap((ended): Command[] => [
    ['HSET', key, ...ended.flat()],
    ['EXPIRE', key, CALLED_S],
  ])
  await record(deps.redis, windows, [...remembered, ...writeOccasions(found.occasions)])
}

/** Records the ends of windows, and what was found in them, unless another process has done so that is elected meanwhile. */
async function record(redis: Redis, windows: readonly Window[], found: readonly Command[]): Promise<void> {
  const guards = windows.map(({ field, fromMs }): Guard => ['HGET', upkeepKeys.watched, String(fromMs), field])
  const fields = windows.flatMap(({ field, toMs }) => [field, toMs])
  await commitIf(redis, { guards, commands: [['HSET', upkeepKeys.watched, ...fields], ...found] })
}
