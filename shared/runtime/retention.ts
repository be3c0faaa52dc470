import type { RetainedKind, Retention } from '../../schemas/records/directory.ts'

/** Kind of data whose rows or objects have an age. Releases have a date of their own. */
export type RowKind = Exclude<RetainedKind, 'releases'>

/**
 * Returns how many days a kind of data is kept: the value of the workspace, at most that of the installation
 * (RETENTION_DAYS). A workspace keeps its value when that of the installation becomes smaller.
 */
export function keptDays(retention: Retention | undefined, kind: RowKind, installationDays: number): number {
  return Math.min(retention?.[kind] ?? installationDays, installationDays)
}

/** Returns why a retention cannot be stored, naming the field and the rule, or undefined. */
export function retentionFault(retention: Retention, installationDays: number): string | undefined {
  for (const [kind, days] of Object.entries(retention)) {
    if (kind !== 'releases' && days !== undefined && days > installationDays) {
      return `${kind} must be at most ${installationDays} days, which is how long this installation keeps rows`
    }
  }
  return undefined
}

const DAY_MS = 86_400_000

/**
 * Returns the first day whose data is still kept, in days since 1970 (UTC). Data of a day is kept until `days` days after
 * that day has begun, as by the TTL of the tables.
 */
export function firstKeptDay(days: number, nowMs: number): number {
  return Math.floor(nowMs / DAY_MS) - days + 1
}
