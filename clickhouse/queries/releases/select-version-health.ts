import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { findingsOfVariants } from '../attributes/membership.ts'
import { ENVIRONMENT, SERVICE_VERSION } from '../attributes/origin.ts'
import { FINDING_SET_SETTINGS, findingSet } from '../findings/finding-set.ts'
import { conditionsOfScope, type RatesFilter, ROWS_READ_MAX, ratesCondition } from '../services/select-span-rates.ts'
import { boundTimes, IN_TIME } from '../traces/search/time-range.ts'

/** A version of a service. */
export interface ServiceVersionKey {
  readonly service: string
  readonly version: string
}

/** Spans of a version. Numbers of 64 bits are decimal text. */
export interface VersionSpansRow extends ServiceVersionKey {
  readonly spans: string
  readonly errors: string
  /** Minutes of its first and last span in the range, Unix seconds. */
  readonly first: string
  readonly last: string
}

/** Sessions in which a version was used, and the people of those that are identified. */
export interface VersionSessionsRow extends ServiceVersionKey {
  readonly sessions: string
  readonly erroredSessions: string
  readonly crashedSessions: string
  readonly people: string
  readonly erroredPeople: string
  readonly crashedPeople: string
}

/** The service of a finding, and the version in which it occurred first. */
export interface FirstOccurrenceRow extends ServiceVersionKey {
  readonly id: string
  readonly isNew: boolean
}

const SETTINGS = { max_rows_to_read: String(ROWS_READ_MAX) }
/** Most findings of one read. */
const FINDINGS_MAX = 10_000

/** Returns the versions with spans in a range. */
export function selectVersionSpans(
  client: ClickHouseClient,
  filter: RatesFilter,
  signal: AbortSignal,
): Promise<VersionSpansRow[]> {
  const { sql, params } = ratesCondition(filter)
  return selectRows<VersionSpansRow>(client, {
    query: `
      SELECT toString(service_name) AS service, toString(service_version) AS version, sum(span_stats.spans) AS spans,
             sumIf(span_stats.spans, status_code = 2) AS errors, toUnixTimestamp(min(minute)) AS first, toUnixTimestamp(max(minute)) AS last
      FROM span_stats WHERE ${sql} GROUP BY service, version`,
    params,
    signal,
    settings: SETTINGS,
  })
}

/** Returns the versions that were used in sessions in a range, by spans and exceptions of these. */
export function selectVersionSessions(
  client: ClickHouseClient,
  filter: RatesFilter,
  signal: AbortSignal,
): Promise<VersionSessionsRow[]> {
  const { fromSeconds, toSeconds, environment } = filter
  const conditions = (environmentColumn: string) =>
    [
      ...[...conditionsOfScope(filter), "session_id != ''"],
      ...(environment === undefined ? [] : [`${environmentColumn} = {environment: String}`]),
    ].join(' AND ')
  const nano = (seconds: number) => BigInt(seconds) * 1_000_000_000n
  const rows = `
    SELECT session_id, toString(service_name) AS service, ${SERVICE_VERSION} AS version, false AS errored, false AS crashed
    FROM spans WHERE ${conditions(ENVIRONMENT)} AND ${IN_TIME} GROUP BY session_id, service, version
    UNION ALL
    SELECT session_id, toString(service_name), toString(service_version), true, max(escaped)
    FROM exceptions
    WHERE ${conditions('environment')} AND received_at >= fromUnixTimestamp({fromSeconds: UInt32}) AND received_at < fromUnixTimestamp({toSeconds: UInt32})
    GROUP BY session_id, service_name, service_version`
  const numbers = (of: string, name: string) => `
    uniqExactIf(${of}, ${of} != '') AS ${name}, uniqExactIf(${of}, ${of} != '' AND hasErrored) AS errored${name},
    uniqExactIf(${of}, ${of} != '' AND hasCrashed) AS crashed${name}`
  return selectRows<VersionSessionsRow>(client, {
    query: `
      SELECT service, version, Sessions AS sessions, erroredSessions, crashedSessions, People AS people, erroredPeople, crashedPeople
      FROM (
        SELECT service, version, ${numbers('session_id', 'Sessions')}, ${numbers('person', 'People')}
        FROM (
          SELECT session_id, service, version, max(errored) AS hasErrored, max(crashed) AS hasCrashed
          FROM (${rows}) GROUP BY session_id, service, version) AS used
        LEFT JOIN (
          SELECT session_id, argMax(identifier, received_at) AS person FROM session_identities
          WHERE workspace_id = {workspaceId: String} AND session_id IN (SELECT session_id FROM (${rows}))
          GROUP BY session_id) AS identified USING (session_id)
        GROUP BY service, version)`,
    params: { ...filter, ...boundTimes(nano(fromSeconds), nano(toSeconds)) },
    signal,
    settings: SETTINGS,
  })
}

/**
 * Returns the findings that occurred first in a range, and those of a set, each with its service and the version in which it
 * occurred first. Only retained occurrences are known.
 */
export function selectFirstOccurrences(
  client: ClickHouseClient,
  filter: RatesFilter,
  { merges, others }: { readonly merges: FindingMerges; readonly others: readonly string[] },
  signal: AbortSignal,
): Promise<FirstOccurrenceRow[]> {
  const conditions = conditionsOfScope(filter).join(' AND ')
  const variants = findingsOfVariants(`SELECT variant_id FROM findings WHERE ${conditions}`, merges)
  const isOther = others.length === 0 ? 'false' : `id IN (${findingSet(others)})`
  return selectRows<FirstOccurrenceRow>(client, {
    query: `
      SELECT id, service, version, isNew
      FROM (
        SELECT id, argMin(ofService, firstNano) AS service, argMin(ofVersion, firstNano) AS version, min(firstNano) AS firstOf,
               firstOf >= {fromSeconds: UInt64} * 1000000000 AND firstOf < {toSeconds: UInt64} * 1000000000 AS isNew
        FROM (
          SELECT variant_id, toString(any(service_name)) AS ofService, toString(any(service_version)) AS ofVersion,
                 min(first_seen_unix_nano) AS firstNano
          FROM findings WHERE ${conditions} GROUP BY variant_id HAVING sum(occurrence_count) > 0) AS occurred
        INNER JOIN (${variants}) AS variants USING (variant_id)
        GROUP BY id)
      WHERE isNew OR ${isOther} ORDER BY firstOf DESC LIMIT ${FINDINGS_MAX}`,
    params: { ...filter },
    signal,
    settings: { ...FINDING_SET_SETTINGS, ...SETTINGS },
  })
}
