import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type FindingKey, findingParams, isCounting, ofFinding, SEEN_UNIX_NANO } from '../attributes/membership.ts'
import { type CountedFinding, countedOfOneQuery, type LatestPlace } from './finding-row.ts'
import { FINDINGS_SETTINGS, ONE_FINDING_SETTINGS } from './findings-settings.ts'

/** A finding with the surfaces, services and versions that have it, and its days. 64-bit numbers are decimal text. */
export interface CountedFindingRow extends CountedFinding, LatestPlace {
  readonly surfaceIds: readonly string[]
  readonly serviceNames: readonly string[]
  /** At most 20, without the empty one. */
  readonly serviceVersions: readonly string[]
  /** The first day with a retained occurrence, `2026-11-21`. */
  readonly firstDay: string
  /** Days with occurrences in ascending order, and their counts. */
  readonly days: readonly [readonly string[], readonly string[]]
  /** Arrivals of the first and the last occurrence, Unix ms. */
  readonly firstReceivedMs: string
  readonly lastReceivedMs: string
}

const OF_VARIANT = `,
             any(service_version) AS version, sumMap([day], [occurrence_count]) AS totals,
             min(first_received_at) AS firstArrival, max(last_received_at) AS lastArrival`

const PLACES = `,
           groupUniqArray(100)(surface) AS surfaceIds,
           arrayMap(name -> leftUTF8(name, 1024), groupUniqArray(100)(service)) AS serviceNames,
           arraySort(arrayMap(name -> leftUTF8(name, 256), groupUniqArrayIf(20)(version, version != ''))) AS serviceVersions,
           sumMap(totals.1, totals.2) AS days, days.1[1] AS firstDay,
           toUnixTimestamp64Milli(min(firstArrival)) AS firstReceivedMs, toUnixTimestamp64Milli(max(lastArrival)) AS lastReceivedMs`

/** Returns what is counted of a finding, or undefined if it is unknown. */
export async function selectFinding(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<CountedFindingRow | undefined> {
  const [row] = await selectRows<CountedFindingRow>(client, {
    query: countedOfOneQuery(key, OF_VARIANT, PLACES),
    params: findingParams(key),
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return row
}

/** In how many traces and sessions a finding occurred, to 1 % where there are many. Decimal text. */
interface FindingExtent {
  readonly traceCount: string
  readonly sessionCount: string
}

/** Counts the traces and the sessions of a finding. */
export async function selectFindingExtent(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<FindingExtent> {
  const [row] = await selectRows<FindingExtent>(client, {
    query: `
      SELECT uniqCombinedIf(14)(trace_id, trace_id != toFixedString('', 16)) AS traceCount,
             uniqCombinedIf(14)(session_id, session_id != '') AS sessionCount
      FROM exceptions WHERE ${ofFinding(key)}`,
    params: findingParams(key),
    signal,
    settings: FINDINGS_SETTINGS,
  })
  return row ?? { traceCount: '0', sessionCount: '0' }
}

/** Whom a finding concerned. Decimal text. */
interface FindingReach {
  /** Within about 1 %. */
  readonly sessionCount: string
  /** The people of these sessions who are identified, within about 1 %. */
  readonly peopleCount: string
}

/** Most sessions of a finding whose people are counted. Their ids have 4 MB. */
const IDENTIFIED_SESSIONS = 100_000

/**
 * Counts the sessions of a finding, and the people in them, of 100,000 sessions at most. The identity of a session is the one that
 * was received last.
 */
export async function selectFindingReach(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<FindingReach> {
  const [row] = await selectRows<FindingReach>(client, {
    query: `
      SELECT uniqCombinedIf(14)(session_id, session_id != '') AS sessionCount,
             (SELECT uniqCombinedIf(14)(person, person != '') FROM (
                SELECT argMax(identifier, tuple(received_at, identifier, source_type, name, email)) AS person
                FROM session_identities
                WHERE workspace_id = {workspaceId: String} AND session_id IN (
                  SELECT DISTINCT session_id FROM exceptions WHERE ${ofFinding(key)} AND session_id != ''
                  LIMIT {sessions: UInt32})
                GROUP BY session_id)) AS peopleCount
      FROM exceptions WHERE ${ofFinding(key)}`,
    params: { ...findingParams(key), sessions: IDENTIFIED_SESSIONS },
    signal,
    settings: FINDINGS_SETTINGS,
  })
  return row ?? { sessionCount: '0', peopleCount: '0' }
}

/** The stack frames of a finding as JSON (an array of StoredFrame), and the release of their version. */
interface FindingFrames {
  readonly frames: string
  readonly releaseSlug: string
}

/**
 * Returns the stack frames of a finding. They are from the version that threw the finding last among versions with a resolved
 * frame, else from the version that threw it last. Returns undefined if no stack of the finding was symbolicated.
 */
export async function selectFindingFrames(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<FindingFrames | undefined> {
  const precedence = `(rank, resolved_frame_count, ${SEEN_UNIX_NANO})`
  const [row] = await selectRows<FindingFrames>(client, {
    query: `
      SELECT frames, releaseSlug FROM (
        SELECT argMax(finding_frames.frames, ${precedence}) AS frames,
               argMax(release_slug, ${precedence}) AS releaseSlug,
               argMax(resolved_frame_count, ${precedence}) > 0 AS isResolved,
               max(${SEEN_UNIX_NANO}) AS lastOccurredAt
        FROM finding_frames
        WHERE ${ofFinding(key)}
        GROUP BY service_version)
      ORDER BY isResolved DESC, lastOccurredAt DESC LIMIT 1`,
    params: findingParams(key),
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return row
}

/** An occurrence of a finding. Absent texts are empty, and absent ids are zeros. */
export interface OccurrenceRow {
  readonly occurredUnixNano: string
  readonly receivedMs: string
  readonly traceId: string
  readonly spanId: string
  readonly sessionId: string
  readonly serviceVersion: string
  readonly type: string
  /** The first characters of the message. */
  readonly message: string
  /** The whole message and the stack of the first row. Empty in the others. */
  readonly wholeMessage: string
  readonly stacktrace: string
  readonly fingerprint: string
  /** 16 bytes as hexadecimal digits. */
  readonly variantId: string
  readonly surfaceId: string
  readonly serviceName: string
  readonly environment: string
}

/** Chooses the occurrences to read. */
interface LastOccurrences {
  /** A day since which there are as many, or that of the first one, `2026-11-21`. */
  readonly since: string
  readonly limit: number
  readonly messageLength: number
}

/** Returns the occurrences that were received last, the latest first. They are read from the end of each day. */
export function selectLastOccurrences(
  client: ClickHouseClient,
  key: FindingKey,
  { since, limit, messageLength }: LastOccurrences,
  signal: AbortSignal,
): Promise<OccurrenceRow[]> {
  const sinceDay = `${ofFinding(key)} AND received_at >= toDateTime64({since: Date}, 3, 'UTC')`
  return selectRows<OccurrenceRow>(client, {
    query: `
      SELECT * REPLACE (if(rowNumberInAllBlocks() = 0, stacktrace, '') AS stacktrace,
                        if(rowNumberInAllBlocks() = 0, wholeMessage, '') AS wholeMessage)
      FROM (
        SELECT occurred_at_unix_nano AS occurredUnixNano, toUnixTimestamp64Milli(received_at) AS receivedMs,
               lower(hex(trace_id)) AS traceId, lower(hex(span_id)) AS spanId, session_id AS sessionId,
               leftUTF8(service_version, 256) AS serviceVersion, leftUTF8(exceptions.type, 1024) AS type,
               leftUTF8(exceptions.message, {messageLength: UInt32}) AS message,
               leftUTF8(exceptions.message, 8192) AS wholeMessage, stacktrace, fingerprint,
               lower(hex(variant_id)) AS variantId, surface_id AS surfaceId, service_name AS serviceName, environment
        FROM exceptions
        WHERE ${sinceDay} AND ${isCounting(sinceDay)}
        ORDER BY received_at DESC, stored_at DESC LIMIT {limit: UInt32})`,
    params: { ...findingParams(key), since, limit, messageLength },
    signal,
    // Texts are read of the rows that the order chooses.
    settings: { ...ONE_FINDING_SETTINGS, query_plan_optimize_lazy_materialization: 1 },
  })
}
