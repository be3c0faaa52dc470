import type { AdmittedQueue } from '../../../schemas/queues/names.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import type { ClickHouseClient } from '../../client.ts'
import { COUNTED_REQUESTS } from '../../counted-requests.ts'
import { selectRows } from '../../select.ts'
import { AS_SENT } from './period.ts'

/** Requests of one kind that arrived in one hour. */
export interface LoggedRequests {
  readonly kind: AdmittedQueue
  /** Hours since 1970. */
  readonly hour: number
  /** Accepted requests, as far as their count is copied from Redis. */
  readonly accepted: number
  /** Requests that workers have processed. */
  readonly processed: number
}

/** A surface of the workspace with a kind of its requests. */
export interface SurfaceKind {
  readonly surfaceId: string
  readonly kind: AdmittedQueue
}

const OF_PAIRS = `workspace_id = {workspaceId: String} AND (toString(surface_id), toString(signal)) IN (
  SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({surfaceIds: Array(String)}, {kinds: Array(String)})) AS pair))`

/** Returns the accepted and the processed requests of surfaces that arrived in this hour (since 1970) or later. */
export async function selectLoggedRequests(
  client: ClickHouseClient,
  { workspaceId, pairs, firstHour }: { workspaceId: string; pairs: readonly SurfaceKind[]; firstHour: number },
  abortSignal: AbortSignal,
): Promise<LoggedRequests[]> {
  const rows = await selectRows<Record<'kind' | 'hour' | 'accepted' | 'processed', string>>(client, {
    query: `
      SELECT kind, hour, sum(counted) AS accepted, sum(logged) AS processed
      FROM (
        SELECT toString(signal) AS kind, toUInt64(intDiv(toUnixTimestamp(received_hour), 3600)) AS hour,
               toUInt64(${COUNTED_REQUESTS}) AS counted, toUInt64(0) AS logged
        FROM request_counts
        WHERE ${OF_PAIRS} AND received_hour >= fromUnixTimestamp64Milli({firstMs: Int64}, 'UTC') AND outcome = 'accepted'
        GROUP BY surface_id, kind, hour
        UNION ALL
        SELECT toString(signal), toUInt64(intDiv(toUnixTimestamp(received_at), 3600)), 0, toUInt64(sum(payloads))
        FROM ingest_log
        WHERE ${OF_PAIRS} AND received_at >= fromUnixTimestamp64Milli({firstMs: Int64}) AND ${AS_SENT}
        GROUP BY ALL
      )
      GROUP BY kind, hour`,
    params: {
      workspaceId,
      surfaceIds: pairs.map(({ surfaceId }) => surfaceId),
      kinds: pairs.map(({ kind }) => kind),
      firstMs: firstHour * HOUR_MS,
    },
    signal: abortSignal,
  })
  return rows.map(({ kind, hour, accepted, processed }) => ({
    kind: kind as AdmittedQueue,
    hour: Number(hour),
    accepted: Number(accepted),
    processed: Number(processed),
  }))
}
