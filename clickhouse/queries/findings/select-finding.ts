import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type CountedFinding, countedQuery, detailsQuery, type FindingDetails } from './finding-row.ts'
import { ONE_FINDING_SETTINGS } from './findings-settings.ts'

/** Identifies a finding. */
export interface FindingKey {
  readonly workspaceId: string
  readonly findingId: string
}

/** A finding with the surfaces and services that have it, and its days. 64-bit numbers are decimal text. */
export type CountedFindingRow = CountedFinding & FindingPlaces

/** The details of a finding with the versions that have it, and how many traces and sessions do. */
type FindingDetailsRow = FindingDetails & FindingExtent

/** Further columns of `findings`. */
interface FindingPlaces {
  readonly surfaceIds: readonly string[]
  readonly serviceNames: readonly string[]
  /** The first day with a retained occurrence, `2026-11-21`. */
  readonly firstDay: string
  /** Days with occurrences in ascending order, and their counts. */
  readonly days: readonly [readonly string[], readonly string[]]
}

/** Further columns of `finding_details`. */
interface FindingExtent {
  readonly serviceVersions: readonly string[]
  readonly traceCount: string
  readonly sessionCount: string
}

const CONDITION = 'workspace_id = {workspaceId: String} AND finding_id = {findingId: String}'

const PLACES = `,
    groupUniqArray(100)(surface_id) AS surfaceIds,
    arrayMap(name -> leftUTF8(name, 1024), groupUniqArray(100)(findings.service_name)) AS serviceNames,
    min(day) AS firstDay, sumMap([day], [occurrence_count]) AS days`

const EXTENT = `,
    arraySort(arrayMap(version -> leftUTF8(version, 256),
      arrayFilter(version -> version != '', groupUniqArrayMerge(20)(service_versions)))) AS serviceVersions,
    ifNull(uniqCombinedMerge(14)(traces), 0) AS traceCount,
    ifNull(uniqCombinedMerge(14)(sessions), 0) AS sessionCount`

const NO_DETAILS: FindingDetailsRow = {
  ...{ type: '', message: '' },
  ...{ serviceVersions: [], traceCount: '0', sessionCount: '0' },
}

/** Returns what is counted of a finding, or undefined if it is unknown. */
export async function selectFinding(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<CountedFindingRow | undefined> {
  const [row] = await selectRows<CountedFindingRow>(client, {
    query: countedQuery(CONDITION, PLACES),
    params: { ...key },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return row
}

/** Returns the details of a finding, which are empty until its first insert is complete. */
export async function selectFindingDetails(
  client: ClickHouseClient,
  key: FindingKey,
  signal: AbortSignal,
): Promise<FindingDetailsRow> {
  const [row] = await selectRows<FindingDetailsRow>(client, {
    query: detailsQuery(CONDITION, EXTENT),
    params: { ...key },
    signal,
    settings: ONE_FINDING_SETTINGS,
  })
  return row ?? NO_DETAILS
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
  // As in `findings`, a time in the future counts as five minutes after the arrival at most.
  const seenAt = 'least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000)'
  const precedence = `(rank, resolved_frame_count, ${seenAt})`
  const [row] = await selectRows<FindingFrames>(client, {
    query: `
      SELECT frames, releaseSlug FROM (
        SELECT argMax(finding_frames.frames, ${precedence}) AS frames,
               argMax(release_slug, ${precedence}) AS releaseSlug,
               argMax(resolved_frame_count, ${precedence}) > 0 AS isResolved,
               max(${seenAt}) AS lastOccurredAt
        FROM finding_frames
        WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String}
        GROUP BY service_version)
      ORDER BY isResolved DESC, lastOccurredAt DESC LIMIT 1`,
    params: { ...key },
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
  /** The first characters of the message. */
  readonly message: string
  /** The stack of the first row. Empty in the others. */
  readonly stacktrace: string
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
  return selectRows<OccurrenceRow>(client, {
    query: `
      SELECT * REPLACE if(rowNumberInAllBlocks() = 0, stacktrace, '') AS stacktrace
      FROM (
        SELECT occurred_at_unix_nano AS occurredUnixNano, toUnixTimestamp64Milli(received_at) AS receivedMs,
               lower(hex(trace_id)) AS traceId, lower(hex(span_id)) AS spanId, session_id AS sessionId,
               leftUTF8(service_version, 256) AS serviceVersion, leftUTF8(message, {messageLength: UInt32}) AS message,
               stacktrace
        FROM exceptions
        WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String}
          AND received_at >= toDateTime64({since: Date}, 3, 'UTC')
        ORDER BY workspace_id DESC, finding_id DESC, received_at DESC LIMIT {limit: UInt32})`,
    params: { ...key, since, limit, messageLength },
    signal,
    // One thread reads from the end of each part and stops. Several threads would read ahead.
    settings: { ...ONE_FINDING_SETTINGS, optimize_read_in_order: 1 },
  })
}
