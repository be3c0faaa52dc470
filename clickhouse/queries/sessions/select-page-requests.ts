import { hashOfSession } from '../../../shared/ids/session-hash.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { SessionKey } from './session-key.ts'

/** The requests that a page of a session has numbered. 64-bit numbers are decimal text. */
export interface PageRequestsRow {
  readonly page: string
  /** Number of requests that are settled. */
  readonly received: string
  /** The greatest number. */
  readonly last: number
  /** The first numbers below the last that no settled request has. */
  readonly missing: readonly number[]
  /** Number of pages of the session. */
  readonly total: string
}

/** Returns the pages of a session that number their requests, those that sent last first. */
export function selectPageRequests(
  client: ClickHouseClient,
  { workspaceId, sessionId }: SessionKey,
  { limit, missing }: { readonly limit: number; readonly missing: number },
  signal: AbortSignal,
): Promise<PageRequestsRow[]> {
  return selectRows<PageRequestsRow>(client, {
    query: `
      SELECT page_id AS page, length(numbers) - 1 AS received, numbers[-1] AS last, total,
             arrayFlatten(arrayMap((n, more) -> range(n - more + 1, n), numbers, arrayDifference(numbers))) AS between,
             CAST(arraySlice(between, 1, {missing: UInt32}) AS Array(UInt32)) AS missing
      FROM (
        SELECT page_id, arrayConcat([toInt32(-1)], arraySort(groupUniqArray(toInt32(sequence)))) AS numbers, max(received_at) AS lastAt,
               count() OVER () AS total
        FROM page_requests WHERE workspace_id = {workspaceId: String} AND session_hash = unhex({sessionHash: String})
        GROUP BY page_id ORDER BY lastAt DESC, page_id LIMIT {limit: UInt32})
      ORDER BY lastAt DESC, page_id`,
    params: { workspaceId, sessionHash: hashOfSession(sessionId).toString('hex'), limit, missing },
    signal,
  })
}
