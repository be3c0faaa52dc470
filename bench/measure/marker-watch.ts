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

/** Returns the numbers of markers that have become visible. It may return one again. */
export type SelectVisible = () => Promise<readonly number[]>

/** Time from the start of one poll to the start of the next, unless the poll takes longer. */
export const POLL_EVERY_MS = 20
const VISIBLE_DEADLINE_MS = 60_000

/** Polls for markers that are visible, and records when the first response with each marker arrived. That is never too early. */
export function watchMarkers(select: SelectVisible, markers: readonly Marker[], everyMs = POLL_EVERY_MS): MarkerWatch {
  const stopping = new AbortController()
  let firstUnseen = 0

  async function poll(): Promise<void> {
    const found = await select()
    const now = performance.now()
    for (const number of found) {
      const marker = markers[number]
      if (marker === undefined) throw new Error(`marker ${number} was stored and never sent`)
      marker.visibleAt ??= now
    }
    while (isSettled(markers[firstUnseen])) firstUnseen++
  }

  async function pollOn(): Promise<void> {
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      await poll()
      await delay(Math.max(0, startedAt + everyMs - performance.now()))
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

/**
 * Selects the markers that can be queried in ClickHouse. A part appears as a whole and never changes, so each part is read
 * once, when it is new. Only one granule is read, because the primary key starts with the workspace and the markers have their
 * own. A poll takes 2.2 ms of ClickHouse's CPU time, or 6.2 ms with twelve parts to read.
 */
export function storedMarkers(client: ClickHouseClient, workspaceId: string): SelectVisible {
  const seenParts = new Set<string>()
  return async () => {
    const result = await client.query({
      query: `SELECT reinterpretAsUInt32(reverse(substring(trace_id, 13, 4))), _part FROM spans
              WHERE workspace_id = {workspaceId: String} AND _part NOT IN {seenParts: Array(String)}`,
      query_params: { workspaceId, seenParts: [...seenParts] },
      format: 'JSONCompactEachRow',
      clickhouse_settings: { max_threads: 1 },
    })
    const found = await result.json<[number, string]>()
    for (const [, part] of found) seenParts.add(part)
    return found.map(([number]) => number)
  }
}
