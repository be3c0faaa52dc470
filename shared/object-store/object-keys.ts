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

/** A source map, by the SHA-256 of its bytes (hex): once per workspace. */
export function sourceMapKey(workspaceId: string, sha256: string): string {
  return `source-maps/${keyPart(workspaceId)}/${sha256}.map`
}

/** Everything that was sent for a release and is not in a manifest yet; a lifecycle rule may delete what is older than two days. */
interface UploadPlace {
  workspaceId: string
  surfaceId: string
  slug: string
  path: string
}

/** A part of a map (spec 4.5). */
export function partKey(place: UploadPlace, part: number): string {
  return `${uploadPrefix(place)}/part-${part}`
}

/** Where a signed upload puts a map until its hash is verified. */
export function stagingKey(place: UploadPlace, declared: { hash: string; size: number }): string {
  return `${uploadPrefix(place)}/signed-${keyPart(declared.hash)}-${declared.size}`
}

function uploadPrefix({ workspaceId, surfaceId, slug, path }: UploadPlace): string {
  return `uploads/${[workspaceId, surfaceId, slug, path].map(keyPart).join('/')}`
}

/** A manifest of a release; another completion writes another object. */
export function manifestKey(workspaceId: string, slug: string, sequence: number): string {
  return `${manifestPrefix(workspaceId, slug)}${sequence}.json`
}

/** What the keys of all manifests of a release begin with. */
export function manifestPrefix(workspaceId: string, slug: string): string {
  return `releases/${keyPart(workspaceId)}/${keyPart(slug)}/manifest-`
}

/** One part of an object key, percent-encoded; over 120 encoded bytes, its SHA-256 behind a `~` (CONTRACT 4.3). */
export function keyPart(text: string): string {
  const encoded = /^\.+$/.test(text) ? text.replaceAll('.', '%2E') : encodeURIComponent(text)
  return encoded.length <= 120 ? encoded : `~${createHash('sha256').update(text).digest('hex')}`
}
