import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type OccurrencePlace,
  selectCountReached,
  selectFirstPlaces,
  selectReturns,
} from '../../clickhouse/queries/findings/select-past-findings.ts'
import { loadStandings, type MergedWorkspace, versionDigest } from '../../findings/standing.ts'
import type { FindingKind, FindingOccasion } from '../../schemas/records/alerts.ts'
import type { FindingWork } from '../../schemas/records/finding-work.ts'
import { DAY_MS, SECOND_MS } from '../../schemas/units.ts'
import { occasionId } from '../../shared/ids/occasion-id.ts'

/** Windows in which arrivals are watched. */
export const WINDOW_MS = 2 * SECOND_MS

/** An occasion of the past, and the occurrence that describes its finding. Undefined for the latest one. */
export interface PastOccasion {
  readonly occasion: FindingOccasion
  readonly place: OccurrencePlace | undefined
}

interface PastDeps {
  readonly clickhouse: ClickHouseClient
}

/** Findings of a workspace in a time, Unix ms. */
export interface PastOf extends MergedWorkspace {
  readonly fromMs: number
  readonly toMs: number
}

/** Most new findings that are looked at, the latest. */
export const CREATED_MAX = 2_000

/** Finds the findings that occurred for the first time since `fromMs`, as the watcher does. */
export async function pastCreated(
  { clickhouse }: PastDeps,
  of: PastOf,
  signal: AbortSignal,
): Promise<{ readonly occasions: readonly PastOccasion[]; readonly isCut: boolean }> {
  const places = await selectFirstPlaces(clickhouse, of, { sinceMs: of.fromMs, limit: CREATED_MAX + 1 }, signal)
  const occasions = places.slice(0, CREATED_MAX).map(place => pastOccasion(of, 'finding.created', place))
  return { occasions, isCut: places.length > CREATED_MAX }
}

/** Most findings that members have ignored until they occur a number of times, whose time is looked for. */
const COUNTED_MAX = 200

/**
 * Finds when findings came back that are regressed now, or open although they were ignored: each by the status that members have
 * chosen last. Earlier ones are not known.
 */
export async function pastReturned(
  { clickhouse }: PastDeps,
  of: PastOf,
  works: readonly FindingWork[],
  signal: AbortSignal,
): Promise<readonly PastOccasion[]> {
  const chosen = works.filter(({ status }) => status !== 'open')
  const ids = chosen.map(({ findingId }) => findingId)
  const findingWork = async () => chosen
  const standings = await loadStandings({ clickhouse, findingWork, now: () => of.toMs }, of, ids, signal)
  const standingOf = ({ findingId }: FindingWork) => standings.get(findingId)?.status
  const regressed = chosen.filter(work => standingOf(work) === 'regressed')
  const open = chosen.filter(work => standingOf(work) === 'open')
  const [back, shown, counted] = await Promise.all([
    regressedOccasions(clickhouse, of, regressed, signal),
    openedOccasions(clickhouse, of, open, signal),
    countedOccasions(clickhouse, of, open, signal),
  ])
  // A finding that is ignored until either of both is open from the first one on.
  const first = new Map<string, PastOccasion>()
  for (const one of [...shown, ...counted].toSorted((a, b) => Date.parse(b.occasion.at) - Date.parse(a.occasion.at))) {
    first.set(one.occasion.findingId, one)
  }
  return [...back, ...first.values()].filter(({ occasion }) => {
    const atMs = Date.parse(occasion.at)
    return atMs >= of.fromMs && atMs < of.toMs
  })
}

async function regressedOccasions(
  clickhouse: ClickHouseClient,
  of: PastOf,
  works: readonly FindingWork[],
  signal: AbortSignal,
): Promise<PastOccasion[]> {
  const since = works.map(({ findingId, statusAt }) => ({ findingId, afterMs: Date.parse(statusAt ?? '') }))
  const returns = Map.groupBy(await selectReturns(clickhouse, of, since, signal), ({ findingId }) => findingId)
  return works.flatMap(({ findingId, knownVersions = [] }) => {
    const known = new Set(knownVersions)
    const first = firstOf(
      (returns.get(findingId) ?? []).filter(
        ({ version }) => known.size === 0 || (version !== '' && !known.has(versionDigest(version))),
      ),
    )
    return first === undefined ? [] : [pastOccasion(of, 'finding.regressed', first)]
  })
}

/** Findings that were ignored until a time are open at their first occurrence after it. */
async function openedOccasions(
  clickhouse: ClickHouseClient,
  of: PastOf,
  works: readonly FindingWork[],
  signal: AbortSignal,
): Promise<PastOccasion[]> {
  const after = works.flatMap(({ findingId, until }) =>
    until === undefined ? [] : [{ findingId, afterMs: Date.parse(until) }],
  )
  const returns = Map.groupBy(await selectReturns(clickhouse, of, after, signal), ({ findingId }) => findingId)
  return [...returns.values()].flatMap(all => {
    const first = firstOf(all)
    return first === undefined ? [] : [pastOccasion(of, 'finding.unignored', first)]
  })
}

async function countedOccasions(
  clickhouse: ClickHouseClient,
  of: PastOf,
  works: readonly FindingWork[],
  signal: AbortSignal,
): Promise<PastOccasion[]> {
  const found: PastOccasion[] = []
  for (const { findingId, occurrences, countedBefore = 0, statusAt } of works.slice(0, COUNTED_MAX)) {
    if (occurrences === undefined) continue
    const day = Math.floor(Date.parse(statusAt ?? '') / DAY_MS)
    const count = countedBefore + occurrences
    const reachedMs = await selectCountReached(clickhouse, of, { findingId, day, count }, signal)
    if (reachedMs === undefined) continue
    const atMs = Math.max(reachedMs, Date.parse(statusAt ?? ''))
    const { occasion } = pastOccasion(of, 'finding.unignored', { findingId, variantId: '', receivedMs: atMs })
    found.push({ occasion, place: undefined })
  }
  return found
}

function firstOf<T extends OccurrencePlace>(places: readonly T[]): T | undefined {
  return places.toSorted((a, b) => a.receivedMs - b.receivedMs)[0]
}

/** Returns the occasion that the watcher finds in the window of an occurrence, with the same id. */
function pastOccasion({ workspaceId }: PastOf, kind: FindingKind, place: OccurrencePlace): PastOccasion {
  const { findingId, receivedMs } = place
  const arrivedMs = Math.floor(receivedMs / WINDOW_MS) * WINDOW_MS
  const id = occasionId([workspaceId, findingId, kind, arrivedMs])
  return { occasion: { id, kind, workspaceId, findingId, at: new Date(arrivedMs).toISOString() }, place }
}
