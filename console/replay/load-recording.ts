import { type ReplayChunk, readReplay } from '../api/generated/client.ts'

const PAGE_CHUNKS = 500
/** Chunks that are read: weeks of one window, 20 MB at most. */
const CHUNKS_MAX = 50_000

/** Reads the list of all chunks of a session, without their events. */
export async function loadChunks(sessionId: string, signal: AbortSignal): Promise<readonly ReplayChunk[]> {
  const chunks: ReplayChunk[] = []
  let cursor: string | undefined
  do {
    const page = await readReplay({ sessionId, limit: PAGE_CHUNKS, ...(cursor && { cursor }) }, { signal })
    chunks.push(...page.chunks)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && chunks.length < CHUNKS_MAX)
  return chunks
}
