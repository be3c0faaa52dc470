import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type ChunkPlace, selectReplayChunks } from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import type { SessionKey } from '../../clickhouse/queries/sessions/session-key.ts'
import type { ChunkRef } from './open-chunk.ts'

const PAGE_CHUNKS = 500

/** The chunks of a session, or of one window, in reading order; a page of them is asked for when the one before it was taken. */
export async function* listChunks(
  client: ClickHouseClient,
  key: SessionKey & { readonly windowId: string | undefined },
  queryTimeoutMs: number,
): AsyncGenerator<ChunkRef> {
  let after: ChunkPlace | undefined
  do {
    const page = { ...key, limit: PAGE_CHUNKS, after }
    const rows = await selectReplayChunks(client, page, AbortSignal.timeout(queryTimeoutMs))
    for (const row of rows) {
      yield {
        objectKey: row.objectKey,
        windowId: row.windowId,
        segmentId: row.segmentId,
        segmentNumber: Number(row.segmentNumber),
        firstEventMs: Number(row.firstEventMs),
      }
    }
    after = rows.length === PAGE_CHUNKS ? rows.at(-1) : undefined
  } while (after)
}
