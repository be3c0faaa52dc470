import { createHash } from 'node:crypto'

/** How long what was sent for a release waits for its completion, and how long results are kept (CONTRACT 4.5, 4.7). */
export const UPLOAD_LIFETIME_S = 24 * 60 * 60

/**
 * Redis keys of what a surface has sent for a release and no manifest names yet, in the Redis of the queues: a claim and
 * its job are one transaction.
 *
 * - signed: path → JSON of DeclaredMap, as the last sign call had it (hash)
 * - singles: path → `sha256:size` of the last single upload (hash, the worker's)
 * - parts: of one path (hash): `{part}` → `sha256:size`, the claim; `stored:{part}` → 1 once its object is there;
 *   `bytes` → sum of the sizes; `assembled` → `count:sha256:size`, the map that was made of the parts below count, once it
 *   is stored; `sealed` → the sequence of the manifest that names this map, while one does
 * - completion: of one request, by the SHA-256 of its body → JSON of CompletionRecord
 * - sequence: that of the last accepted completion
 */
export function uploadKeys(release: { workspaceId: string; surfaceId: string; slug: string }) {
  const { workspaceId, surfaceId, slug } = release
  const root = `penstock:upload:${workspaceId}:${surfaceId}:${encodeURIComponent(slug)}`
  return {
    signed: `${root}:signed`,
    singles: `${root}:singles`,
    parts: (path: string) => `${root}:parts:${createHash('sha256').update(path).digest('hex')}`,
    completion: (digest: string) => `${root}:completion:${digest}`,
    sequence: `${root}:sequence`,
  }
}
export type UploadKeys = ReturnType<typeof uploadKeys>

/** A map as a sign call has declared it. */
export interface DeclaredMap {
  readonly size: number
  readonly hash: string
  /** Where its upload goes, or `sha256` of the stored map that it need not be sent for. */
  readonly stagingKey?: string
  readonly sha256?: string
}

/** Where a worker leaves its verdict on a request that a client waits for: JSON of Verdict, for two minutes. */
export const verdictKey = (attempt: string) => `penstock:verdict:${attempt}`
export const VERDICT_LIFETIME_S = 120

/** Published with the attempt when its verdict is there. */
export const VERDICTS_CHANNEL = 'penstock:verdicts'
