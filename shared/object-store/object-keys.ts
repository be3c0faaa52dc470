import { createHash } from 'node:crypto'

/** Key of the object that names the installation of the bucket. */
export const INSTALLATION_KEY = 'installation.json'

/**
 * Returns the key of an object with dead letters: those of one surface that arrived on the same day and are in one job of
 * the queue `dead-letters`. `queue` is the queue that refused the requests.
 */
export function deadLetterKey(letter: {
  workspaceId: string
  surfaceId: string
  queue: string
  receivedAtMs: number
  jobId: string
}): string {
  const day = new Date(letter.receivedAtMs).toISOString().slice(0, 10)
  const parts = [letter.workspaceId, letter.surfaceId, letter.queue, day, letter.jobId]
  return `dead-letters/${parts.map(keyPart).join('/')}`
}

/** Returns the key of a replay chunk (`docs/api/sessions.md#replay`), which session, window and segment determine. */
export function replayKey(chunk: {
  workspaceId: string
  surfaceId: string
  sessionId: string
  windowId: string
  segmentId: string
}): string {
  const parts = [chunk.workspaceId, chunk.surfaceId, chunk.sessionId, chunk.windowId, chunk.segmentId]
  return `replays/${parts.map(distinctPart).join('/')}.jsonl.gz`
}

/** Returns the prefix of the keys of all chunks of a session. It ends with a slash, so it never matches a longer session id. */
export function replayPrefix(session: { workspaceId: string; surfaceId: string; sessionId: string }): string {
  return `replays/${[session.workspaceId, session.surfaceId, session.sessionId].map(distinctPart).join('/')}/`
}

/** Returns the key of a source map. The SHA-256 (hex) of its bytes identifies it within a workspace. */
export function sourceMapKey(workspaceId: string, sha256: string): string {
  return `${sourceMapPrefix(workspaceId)}${sha256}.map`
}

/** Returns the prefix of the keys of all source maps of a workspace. */
export function sourceMapPrefix(workspaceId: string): string {
  return `source-maps/${keyPart(workspaceId)}/`
}

/** Prefix of the keys of all uploads. They may be deleted after two days. */
export const UPLOADS_PREFIX = 'uploads/'

/** Identifies an upload for a release that no manifest contains yet. */
interface Upload {
  workspaceId: string
  surfaceId: string
  slug: string
  path: string
}

/** Returns the key of a part of a source map (`docs/api/releases.md#source-map-part`). */
export function partKey(upload: Upload, part: number): string {
  return `${uploadPrefix(upload)}/part-${part}`
}

/** Returns the key at which a signed upload stores a source map until its hash is verified. */
export function stagingKey(upload: Upload, declared: { hash: string; size: number }): string {
  return `${uploadPrefix(upload)}/signed-${keyPart(declared.hash)}-${declared.size}`
}

function uploadPrefix({ workspaceId, surfaceId, slug, path }: Upload): string {
  return `${UPLOADS_PREFIX}${[workspaceId, surfaceId, slug, path].map(keyPart).join('/')}`
}

/** Returns the key of a manifest. Each completion of a release writes another object. */
export function manifestKey(workspaceId: string, slug: string, sequence: number): string {
  return `${manifestPrefix(workspaceId, slug)}${sequence}.json`
}

/** Returns the sequence of the completion that wrote the manifest with this key. */
export function manifestSequence(key: string): number {
  return Number(/(\d+)\.json$/.exec(key)?.[1])
}

/** Returns the prefix of the keys of all manifests of a release. */
export function manifestPrefix(workspaceId: string, slug: string): string {
  return `releases/${keyPart(workspaceId)}/${keyPart(slug)}/manifest-`
}

/**
 * Encodes one part of an object key: percent-encoded, or `~` and its SHA-256 if that is longer than 120 bytes
 * (`docs/api/sessions.md#replay`).
 */
export function keyPart(text: string): string {
  return shortPart(encodePart(text), text)
}

/**
 * Encodes one part so that different texts have different keys. It encodes a `~` at the beginning too, which otherwise marks
 * a hash.
 */
function distinctPart(text: string): string {
  return shortPart(encodePart(text).replace(/^~/, '%7E'), text)
}

function encodePart(text: string): string {
  return /^\.+$/.test(text) ? text.replaceAll('.', '%2E') : encodeURIComponent(text)
}

function shortPart(encoded: string, text: string): string {
  return encoded.length <= 120 ? encoded : `~${createHash('sha256').update(text).digest('hex')}`
}
