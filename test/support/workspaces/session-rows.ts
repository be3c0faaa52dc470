import { gzipSync } from 'node:zlib'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { replayKey } from '../../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'

/** Workspace, surface and id of a session. */
export interface SessionOwner {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly sessionId: string
}

/** Rows as their tables name them: what a worker would have written. */
export async function insertRows(client: ClickHouseClient, table: string, rows: readonly object[]): Promise<void> {
  await client.insert({
    table,
    values: rows,
    format: 'JSONEachRow',
    clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
  })
}

/** Returns the columns that identify a session. */
export const ownerColumns = ({ workspaceId, surfaceId, sessionId }: SessionOwner) => ({
  workspace_id: workspaceId,
  surface_id: surfaceId,
  session_id: sessionId,
})

/** A time as ClickHouse reads it. */
export const at = (unixMs: number) => new Date(unixMs).toISOString().replace('T', ' ').replace('Z', '')

/** Replay chunk to store. */
export interface TestChunk {
  readonly windowId: string
  readonly segmentId: string
  readonly events: readonly { readonly type: number; readonly timestamp: number; readonly data?: unknown }[]
  readonly receivedAtMs?: number
}

/** Stores a chunk's object and its row, and gives its key. */
export async function storeChunk(
  client: ClickHouseClient,
  objects: Pick<ObjectStore, 'put'>,
  owner: SessionOwner,
  { windowId, segmentId, events, receivedAtMs = Date.now() }: TestChunk,
): Promise<string> {
  const objectKey = replayKey({ ...owner, windowId, segmentId })
  const text = events.map(event => JSON.stringify(event)).join('\n')
  const body = gzipSync(text)
  await objects.put(objectKey, body, { contentType: 'application/gzip' })
  const times = events.map(event => event.timestamp)
  const firstEventMs = Math.min(...times)
  const lastEventMs = Math.max(...times)
  const row = {
    ...ownerColumns(owner),
    received_at: at(receivedAtMs),
    window_id: windowId,
    segment_id: segmentId,
    segment_number: /^\d+$/.test(segmentId) ? Number(segmentId) : -1,
    first_ts_ms: firstEventMs,
    last_ts_ms: lastEventMs,
    activity_count: 1,
    event_count: events.length,
    has_full_snapshot: events.some(event => event.type === 2),
    first_event_ms: firstEventMs,
    last_event_ms: lastEventMs,
    stored_bytes: body.length,
    decompressed_bytes: text.length,
    sha256: 'x'.repeat(32),
    object_key: objectKey,
  }
  await insertRows(client, 'replay_chunks', [row])
  return objectKey
}
