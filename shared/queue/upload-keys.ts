import { createHash } from 'node:crypto'
import { DAY_S, KIB } from '../../schemas/units.ts'

/**
 * How long uploads wait for the completion of their release, and how long results are kept
 * (`docs/api/releases.md#source-map-part`, `docs/api/releases.md#source-map-complete`).
 */
export const UPLOAD_LIFETIME_S = DAY_S

/**
 * Returns the Redis keys of the uploads for a release that no manifest contains yet. They are in the Redis of the queues,
 * so that a claim and its job are one transaction, and have the hash tag of the queue whose jobs they belong to.
 *
 * - signed: path → JSON of DeclaredMap, as the last sign call declared it, until a manifest names the map (hash)
 * - singles: path → `sha256:size` of the last single upload (hash, written by the worker)
 * - parts: for each path (hash): `{part}` → `sha256:size`, the claim; `stored:{part}` → Unix time at which its object was
 *   stored; `waits:{part}` → 1 while its payload waits; `waiting` → number of these; `bytes` → sum of the sizes; `assembled` →
 *   `count:sha256:size`, the map that was assembled from the first `count` parts, once it is stored; `sealed` → the sequence of
 *   the manifest that contains this map, if there is one
 * - claimed: SHA-256 of each path whose claims expire (set)
 * - sealed: SHA-256 of each path whose claims a manifest keeps (set)
 * - completion: JSON of the CompletionRecord of one request, which the SHA-256 of its body identifies
 * - recorded: these digests, by the Unix time at which the record expires, infinite while it is in progress
 *   (sorted set)
 * - sequence: the sequence of the last accepted completion
 */
export function uploadKeys(release: { workspaceId: string; surfaceId: string; slug: string }) {
  const { workspaceId, surfaceId, slug } = release
  const owner = `upload:${workspaceId}:${surfaceId}:${encodeURIComponent(slug)}`
  const maps = `penstock:{source-maps.0}:${owner}`
  const completions = `penstock:{completions.0}:${owner}`
  return {
    signed: `${maps}:signed`,
    singles: `${maps}:singles`,
    parts: (path: string) => `${maps}:parts:${createHash('sha256').update(path).digest('hex')}`,
    partsOf: (pathSha256: string) => `${maps}:parts:${pathSha256}`,
    claimed: `${maps}:claimed`,
    sealed: `${maps}:sealed`,
    completion: (digest: string) => `${completions}:completion:${digest}`,
    recorded: `${completions}:recorded`,
    sequence: `${completions}:sequence`,
  }
}
/** The Redis keys of the uploads for a release. */
export type UploadKeys = ReturnType<typeof uploadKeys>

/**
 * Returns the Redis keys with which the staged maps of a workspace are bounded: objects that may be uploaded to signed
 * addresses and are not in a manifest yet.
 *
 * - objects: members of `stagedMember` by the Unix time at which they are forgotten (sorted set)
 * - bytes: sum of the bytes of these members
 */
export function stagedKeys(workspaceId: string) {
  const root = `penstock:{source-maps.0}:staged:${workspaceId}`
  return { objects: `${root}:objects`, bytes: `${root}:bytes` }
}

/** A staged map counts for at least this, so that the number of them is bounded too. */
const MIN_STAGED_BYTES = 64 * KIB

/** Returns the member of a staged map: the bytes that it counts for, and a hash of its key. */
export function stagedMember({ stagingKey, size }: { readonly stagingKey: string; readonly size: number }): string {
  return `${Math.max(size, MIN_STAGED_BYTES)}:${createHash('sha1').update(stagingKey).digest('base64url')}`
}

/** A map as a sign call has declared it. */
export interface DeclaredMap {
  readonly size: number
  readonly hash: string
  /** Key of the object to upload to; absent if the map is stored already. */
  readonly stagingKey?: string
  /** SHA-256 of the stored map, if it need not be uploaded. */
  readonly sha256?: string
}

/** Returns the Redis key of the verdict of a worker on a request that a client waits for (JSON of Verdict). */
export const verdictKey = (attempt: string) => `penstock:{completions.0}:verdict:${attempt}`
/** How long a published verdict can be read. */
export const VERDICT_LIFETIME_S = 120

/** Channel on which a worker publishes the attempt when its verdict can be read. */
export const VERDICTS_CHANNEL = 'penstock:{completions.0}:verdicts'
