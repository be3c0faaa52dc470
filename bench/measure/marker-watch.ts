import { setTimeout as delay } from 'node:timers/promises'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { pollUntil } from '../support/poll-until.ts'
import type { Marker } from './marker-sender.ts'

/** Watches when markers become visible. */
export interface MarkerWatch {
  /** Waits until every marker that was not refused can be queried. Throws if one is missing after the deadline. */
  untilVisible(): Promise<void>
  /** Stops. Throws if polling has failed. */
  stop(): Promise<void>
}

/** Time from the start of one poll to the start of the next, unless the poll takes longer. */
export const POLL_EVERY_MS = 20
const VISIBLE_DEADLINE_MS = 60_000

/**
 * Polls ClickHouse for markers that can be queried, and records when the first response with each marker arrived. That is
 * never too early. A part appears as a whole and never changes, so each part is read once, when it is new. Only one
 * granule is read, because the primary key starts with the workspace and the markers have their own. A poll takes 2.2 ms
 * of ClickHouse's CPU time, or 6.2 ms with twelve parts to read.
 */
export function watchMarkers(client: ClickHouseClient, workspaceId: string, markers: readonly Marker[]): MarkerWatch {
  const stopping = new AbortController()
  const seenParts = new Set<string>()
  let firstUnseen = 0

  async function poll(): Promise<void> {
    const found = await selectMarkers(client, workspaceId, [...seenParts])
    const now = performance.now()
    for (const [number, part] of found) {
      const marker = markers[number]
      if (marker === undefined) throw new Error(`marker ${number} was stored and never sent`)
      marker.visibleAt ??= now
      seenParts.add(part)
    }
    while (isSettled(markers[firstUnseen])) firstUnseen++
  }

  async function pollOn(): Promise<void> {
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      await poll()
      await delay(Math.max(0, startedAt + POLL_EVERY_MS - performance.now()))
    }
  }

  let failure: unknown
  const polling = pollOn().catch(error => {
    failure = error
  })

  function assertPolling(): void {
    if (failure !== undefined) throw new Error('the markers could not be watched', { cause: failure })
  }

  return {
    async untilVisible() {
      await pollUntil('every acknowledged marker can be queried', VISIBLE_DEADLINE_MS, () => {
        assertPolling()
        return firstUnseen === markers.length
      })
    },
    async stop() {
      stopping.abort()
      await polling
      assertPolling()
    },
  }
}

const isSettled = (marker: Marker | undefined) => marker?.isRefused === true || marker?.visibleAt !== undefined

/** Returns the numbers of the markers in all parts except these, each with its part. */
async function selectMarkers(
  client: ClickHouseClient,
  workspaceId: string,
  seenParts: readonly string[],
): Promise<[number: number, part: string][]> {
  const result = await client.query({
    query: `SELECT reinterpretAsUInt32(reverse(substring(trace_id, 13, 4))), _part FROM spans
            WHERE workspace_id = {workspaceId: String} AND _part NOT IN {seenParts: Array(String)}`,
    query_params: { workspaceId, seenParts },
    format: 'JSONCompactEachRow',
    clickhouse_settings: { max_threads: 1 },
  })
  return result.json<[number, string]>()
}
