import type { ClickHouseSettings } from '@clickhouse/client'
import { FINDING_ID } from '../attributes/membership.ts'

/** A finding, and the day from which its occurrences are read, in days since 1970. */
export interface FindingSince {
  readonly findingId: string
  readonly day: number
}

/**
 * Settings of queries that contain a set of findings as text. A set of 10,000 has 270 KB, or 330 KB with days, which is more than
 * a bound parameter and a query may have by default.
 */
export const FINDING_SET_SETTINGS: ClickHouseSettings = { max_query_size: '1048576' }

/** Returns a query of the ids of a set, to be used with IN. They are not bound, so a text that is not an id is a TypeError. */
export function findingSet(findingIds: readonly string[]): string {
  const checked = findingIds.filter(id => FINDING_ID.test(id))
  if (checked.length !== findingIds.length)
    throw new TypeError('a set of findings has a text that is not the id of one')
  return `SELECT toFixedString(arrayJoin(splitByChar(',', '${checked.join(',')}')), 30)`
}

/** Returns a query of the findings of a set, as finding_id, and the days from which they are read, as since. */
export function findingsSince(findings: readonly FindingSince[]): string {
  const words = findings.map(({ findingId, day }) => {
    if (!FINDING_ID.test(findingId) || !Number.isInteger(day))
      throw new TypeError('a set of findings has an invalid entry')
    return `${findingId}:${day}`
  })
  return `
    SELECT toFixedString(words[1], 30) AS finding_id, toDate(toUInt16(words[2])) AS since
    FROM (SELECT splitByChar(':', arrayJoin(splitByChar(',', '${words.join(',')}'))) AS words)`
}

/** Returns the days of a set of findings since the earliest of them, as a parameter. */
export function earliestDay(findings: readonly FindingSince[]): number {
  return findings.reduce((earliest, { day }) => Math.min(earliest, day), Number.MAX_SAFE_INTEGER)
}
