import type { RetainedKind, Retention } from '../../schemas/records/directory.ts'
import { DAY_MS } from '../../schemas/units.ts'

/** Kind of data whose rows or objects have an age. Releases have a date of their own. */
export type RowKind = Exclude<RetainedKind, 'releases'>

/** Kinds of data of a person that an erasure finds by the identities of sessions, which are of the kind `sessions`. */
const FOUND_BY_SESSION = ['traces', 'logs', 'findings', 'replay', 'dead-letters'] as const

/**
 * Returns how many days a kind of data is kept: the value of the workspace, at most that of the installation
 * (RETENTION_DAYS). A workspace keeps its value when that of the installation becomes smaller. When that of the installation
 * becomes larger, sessions are kept as long as the data that is found by them.
 */
export function keptDays(retention: Retention | undefined, kind: RowKind, installationDays: number): number {
  const days = Math.min(retention?.[kind] ?? installationDays, installationDays)
  return kind === 'sessions' ? Math.max(days, longestFound(retention, installationDays).days) : days
}

function longestFound(retention: Retention | undefined, installationDays: number) {
  const kept = FOUND_BY_SESSION.map(kind => ({ kind, days: keptDays(retention, kind, installationDays) }))
  return kept.reduce((longest, other) => (other.days > longest.days ? other : longest))
}

/**
 * Returns why sessions would be kept too short beside the other kinds of data of a workspace, naming the field and the rule,
 * or undefined.
 */
export function sessionsFault(retention: Retention, installationDays: number): string | undefined {
  const { kind, days } = longestFound(retention, installationDays)
  if (retention.sessions === undefined || retention.sessions >= days) return undefined
  return `sessions must be at least ${days} days, which is how long ${kind} are kept: an erasure finds the data of a person by the sessions`
}

/** Returns why values of a retention cannot be stored, naming the field and the rule, or undefined. */
export function retentionFault(retention: Retention, installationDays: number): string | undefined {
  for (const [kind, days] of Object.entries(retention)) {
    if (kind !== 'releases' && days !== undefined && days > installationDays) {
      return `${kind} must be at most ${installationDays} days, which is how long this installation keeps rows`
    }
  }
  return undefined
}

/**
 * Returns the first day whose data is still kept, in days since 1970 (UTC). Data of a day is kept until `days` days after
 * that day has begun, as by the TTL of the tables.
 */
export function firstKeptDay(days: number, nowMs: number): number {
  return Math.floor(nowMs / DAY_MS) - days + 1
}
