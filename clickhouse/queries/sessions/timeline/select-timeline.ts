import type { ClickHouseSettings } from '@clickhouse/client'
import { TIMELINE_KINDS, type TimelineKind } from '../../../../schemas/http/sessions/timeline.ts'
import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import { OF_SESSION, type SessionKey } from '../session-key.ts'
import type { SessionDays } from './select-session-days.ts'
import { TIMELINE_SOURCES, type TimelineRows, type TimelineSource } from './timeline-sources.ts'

/** Position of an entry in a timeline. */
export interface TimelinePosition {
  /** Unix nanoseconds. */
  readonly at: bigint
  readonly kind: TimelineKind
  /** 32 hex digits. */
  readonly tie: string
}

/** Selects entries of a timeline, the oldest first. */
export interface TimelineKey extends SessionKey, SessionDays {
  /** Bounds of the time, Unix nanoseconds, both inclusive. */
  readonly since: bigint
  readonly until: bigint
  /** The last entry of the previous page, at or after `since`. */
  readonly after: TimelinePosition | undefined
  readonly limit: number
}

/** The kind and the time of an entry. */
interface TimelineTime {
  readonly kind: TimelineKind
  readonly at: bigint
}

/** The last time that is stored, in Unix nanoseconds. */
export const UNIX_NANO_MAX = 2n ** 64n - 1n

/** A span may end before it starts, when a clock is set back. The end of its trace may then be as much too early. */
const SPAN_END_SLACK_NANOS = 1_000_000_000n

/** Filters and indexes are applied before parts are read, and sessions are conditions that seldom come again. */
const SETTINGS: ClickHouseSettings = { use_skip_indexes_on_data_read: 0, use_query_condition_cache: 0 }

/**
 * Returns the times of the next entries of these kinds, in the order of time, then of kinds: at most `limit` of them. Wide columns
 * are opened for entries at the end of the previous page only. An entry that was received several times is in it as often.
 */
export async function selectTimelineTimes(
  client: ClickHouseClient,
  key: TimelineKey,
  kinds: readonly TimelineKind[],
  signal: AbortSignal,
): Promise<TimelineTime[]> {
  const startedUntil = kinds.includes('span') ? await selectTraceHorizon(client, key, signal) : key.until
  const selects = kinds.flatMap(kind =>
    timesConditions(kind, key.after).map(condition => {
      const { table, ofSession, at } = TIMELINE_SOURCES[kind]
      return `
        (SELECT toUInt8(${TIMELINE_KINDS.indexOf(kind)}) AS kindIndex, ${at} AS at FROM ${table}
         WHERE ${ofSession} AND ${within(at)} AND ${condition} ORDER BY at LIMIT {limit: UInt32})`
    }),
  )
  const rows = await selectRows<{ kindIndex: number; at: string }>(client, {
    query: `SELECT kindIndex, at FROM (${selects.join(' UNION ALL ')}) ORDER BY at, kindIndex LIMIT {limit: UInt32}`,
    params: paramsOf(key, startedUntil),
    signal,
    settings: SETTINGS,
  })
  return rows.map(({ kindIndex, at }) => ({ kind: TIMELINE_KINDS[kindIndex] as TimelineKind, at: BigInt(at) }))
}

/** Returns the next entries of a kind, the oldest first. */
export function selectTimelineRows<K extends TimelineKind>(
  client: ClickHouseClient,
  key: TimelineKey,
  kind: K,
  signal: AbortSignal,
): Promise<TimelineRows[K][]> {
  const source = TIMELINE_SOURCES[kind]
  const { table, ofSession, at, columns } = source
  const tie = tieOf(source)
  return selectRows<TimelineRows[K]>(client, {
    query: `
      SELECT ${at} AS at, ${tie} AS tie, count() OVER (PARTITION BY at, tie) AS receivedCount, surface_id AS surfaceId,
             ${columns}
      FROM ${table}
      WHERE ${ofSession} AND ${within(at)} AND ${afterCondition(kind, key.after)}
      ORDER BY at, tie, received_at LIMIT 1 BY at, tie LIMIT {limit: UInt32}`,
    params: paramsOf(key, key.until),
    signal,
    settings: SETTINGS,
  })
}

/**
 * Returns a time up to which enough traces of the session begin to fill a page, so that later ones are not read. Each of them has a
 * span at its beginning.
 */
async function selectTraceHorizon(client: ClickHouseClient, key: TimelineKey, signal: AbortSignal): Promise<bigint> {
  const { workspaceId, sessionId, since, until, after, limit } = key
  const [row] = await selectRows<{ startsAt: string }>(client, {
    query: `
      SELECT startsAt FROM (
        SELECT min(first_start_unix_nano) AS startsAt FROM session_traces WHERE ${OF_SESSION} GROUP BY trace_id)
      WHERE startsAt ${after === undefined ? '>=' : '>'} {since: UInt64} ORDER BY startsAt LIMIT 1 OFFSET {skipped: UInt32}`,
    params: { workspaceId, sessionId, since: after?.at ?? since, skipped: limit - 1 },
    signal,
  })
  const horizon = row === undefined ? UNIX_NANO_MAX : BigInt(row.startsAt)
  return horizon < until ? horizon : until
}

const tieOf = ({ distinct }: Pick<TimelineSource, 'distinct'>) => `lower(hex(sipHash128(${distinct})))`

const within = (at: string) => `${at} >= {since: UInt64} AND ${at} <= {until: UInt64}`

/** Returns the condition that an entry of this kind comes after a position. */
function afterCondition(kind: TimelineKind, after: TimelinePosition | undefined): string {
  if (after === undefined) return '1'
  const { at } = TIMELINE_SOURCES[kind]
  if (kind === after.kind) {
    return `(${at}, ${tieOf(TIMELINE_SOURCES[kind])}) > ({afterAt: UInt64}, {afterTie: String})`
  }
  return `${at} ${TIMELINE_KINDS.indexOf(kind) < TIMELINE_KINDS.indexOf(after.kind) ? '>' : '>='} {afterAt: UInt64}`
}

/** Returns the same as conditions of several queries, of which the second hashes only the entries of one time. */
function timesConditions(kind: TimelineKind, after: TimelinePosition | undefined): string[] {
  if (kind !== after?.kind) return [afterCondition(kind, after)]
  const { at } = TIMELINE_SOURCES[kind]
  const isTied = `${at} = {afterAt: UInt64} AND ${tieOf(TIMELINE_SOURCES[kind])} > {afterTie: String}`
  return [`${at} > {afterAt: UInt64}`, isTied]
}

function paramsOf(key: TimelineKey, startedUntil: bigint): Readonly<Record<string, unknown>> {
  const { workspaceId, sessionId, firstDay, lastDay, since, until, after, limit } = key
  const openSince = since > SPAN_END_SLACK_NANOS ? since - SPAN_END_SLACK_NANOS : 0n
  return {
    ...{ workspaceId, sessionId, firstDay, lastDay, since, until, limit, openSince, startedUntil },
    ...(after && { afterAt: after.at, afterTie: after.tie }),
  }
}
