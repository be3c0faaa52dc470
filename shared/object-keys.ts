import { createHash } from 'node:crypto'

/** Where a request that could not be stored is kept: by day of arrival, then by the job and its place in it. */
export function deadLetterKey(letter: {
  workspaceId: string
  surfaceId: string
  queue: string
  receivedAtMs: number
  jobId: string
  index: number
}): string {
  const day = new Date(letter.receivedAtMs).toISOString().slice(0, 10)
  const parts = [letter.workspaceId, letter.surfaceId, letter.queue, day, `${letter.jobId}-${letter.index}`]
  return `dead-letters/${parts.map(keyPart).join('/')}`
}

/** Where a replay chunk is kept (CONTRACT 4.3): the same session, window and segment, the same key. */
export function replayKey(chunk: {
  workspaceId: string
  surfaceId: string
  sessionId: string
  windowId: string
  segmentId: string
}): string {
  const parts = [chunk.workspaceId, chunk.surfaceId, chunk.sessionId, chunk.windowId, chunk.segmentId]
  return `replays/${parts.map(keyPart).join('/')}.jsonl.gz`
}

/** One part of an object key, percent-encoded; over 120 encoded bytes, its SHA-256 behind a `~` (CONTRACT 4.3). */
export function keyPart(text: string): string {
  const encoded = /^\.+$/.test(text) ? text.replaceAll('.', '%2E') : encodeURIComponent(text)
  return encoded.length <= 120 ? encoded : `~${createHash('sha256').update(text).digest('hex')}`
}
