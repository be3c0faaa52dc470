import { createHash } from 'node:crypto'
import type { Finding } from '../../../schemas/http/findings/schemas.ts'
import { REGRESSED_IN_MAX } from '../../../schemas/http/findings/work.ts'
import type { FindingWork } from '../../../schemas/records/finding-work.ts'

/** Occurrences of a finding since the day on which its status was chosen. */
export interface Since {
  /** When the last occurrence was received, Unix ms. */
  readonly lastReceivedMs: number
  /** Number of occurrences since the beginning of the day. */
  readonly occurrenceCount: number
  /** Versions that occurred, as far as they matter. */
  readonly versions: readonly string[]
}

/** The fields of a finding that show what members have made of it. */
export type Standing = Pick<
  Finding,
  'status' | 'statusChangedAt' | 'assignee' | 'ignoredUntil' | 'occurrencesUntilOpen' | 'regressedIn'
>

/** Returns the digest by which a version is remembered. */
export function versionDigest(version: string): string {
  return createHash('sha256').update(version).digest('base64url').slice(0, 12)
}

/** Reports whether occurrences since then may change the status that members chose. */
export function dependsOnOccurrences({ status, occurrences }: FindingWork): boolean {
  return status === 'resolved' || (status === 'ignored' && occurrences !== undefined)
}

/** Reports whether a finding has occurred since it was resolved, so that its versions decide whether it is regressed. */
export function hasReturned(work: FindingWork, since: Pick<Since, 'lastReceivedMs'> | undefined): boolean {
  return work.status === 'resolved' && since !== undefined && since.lastReceivedMs > Date.parse(work.statusAt ?? '')
}

/** Returns the versions in which a finding has occurred only after it was resolved, or undefined if it is not regressed. */
function regressedIn(work: FindingWork, since: Since | undefined): readonly string[] | undefined {
  if (since === undefined || !hasReturned(work, since)) return undefined
  const known = new Set(work.knownVersions)
  const later = since.versions.filter(version => !known.has(versionDigest(version)))
  // A finding without versions has none that could tell a later one, so any occurrence counts.
  return later.length > 0 || known.size === 0 ? later : undefined
}

/** Returns how often an ignored finding has still to occur, 0 if it is open again, or undefined if that does not matter. */
function occurrencesLeft(
  { occurrences, countedBefore = 0 }: FindingWork,
  since: Since | undefined,
): number | undefined {
  if (occurrences === undefined) return undefined
  return Math.max(occurrences - Math.max((since?.occurrenceCount ?? 0) - countedBefore, 0), 0)
}

/** Decides the status that a finding has at this time (docs/api/findings.md#finding-work). */
export function standingOf(work: FindingWork | undefined, since: Since | undefined, nowMs: number): Standing {
  if (work === undefined) return { status: 'open' }
  const { statusAt, assignee, until } = work
  const shared = { ...(statusAt !== null && { statusChangedAt: statusAt }), ...(assignee !== null && { assignee }) }
  if (work.status === 'resolved') {
    const versions = regressedIn(work, since)
    return versions === undefined
      ? { status: 'resolved', ...shared }
      : { status: 'regressed', ...shared, regressedIn: versions.slice(0, REGRESSED_IN_MAX) }
  }
  const left = occurrencesLeft(work, since)
  const isOver = left === 0 || (until !== undefined && Date.parse(until) <= nowMs)
  if (work.status === 'open' || isOver) return { status: 'open', ...shared }
  return {
    status: 'ignored',
    ...shared,
    ...(until !== undefined && { ignoredUntil: until }),
    ...(left !== undefined && { occurrencesUntilOpen: left }),
  }
}
