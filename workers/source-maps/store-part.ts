import type { Redis } from 'ioredis'
import type { SourceMapJob } from '../../schemas/queues/source-maps.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import { partKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { uploadKeys } from '../../shared/queue/upload-keys.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import { confirmPart, digestedText, givePartBack } from './part-claims.ts'

/** Dependencies of storing a part of a source map. */
export interface StorePartDeps {
  readonly redis: Redis
  readonly objects: Pick<ObjectStore, 'put'>
  readonly retry: Retry
}

/**
 * Stores a part under the key where its completion looks for it, and marks its claim as stored. A claim that was
 * removed with its release is not renewed. Returns the reason if the part is refused, for example because other bytes
 * have claimed its number since.
 */
export async function storePart(
  deps: StorePartDeps,
  frame: PayloadFrame,
  job: Extract<SourceMapJob, { kind: 'part' }>,
): Promise<Reason | undefined> {
  const { redis, objects } = deps
  const { mapPath, ...claimed } = claimedPart(frame, job)
  const { path, part, claim } = claimed
  const current = await redis.hget(claimed.keys.parts(path), String(part))
  if (current !== null && current !== digestedText(claim)) {
    return { label: 'claim_replaced', detail: 'other bytes have claimed the number of this part' }
  }
  const put = () => objects.put(partKey(mapPath, part), frame.body, { contentType: 'application/octet-stream' })
  try {
    await deps.retry('store a part of a source map', put)
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    await givePartBack(redis, claimed)
    return { label: 'refused_by_object_store', detail: error.message }
  }
  await confirmPart(redis, claimed)
  return undefined
}

/** Returns the claim of a part, and the path of its map. */
function claimedPart(frame: PayloadFrame, { slug, path, part, sha256 }: Extract<SourceMapJob, { kind: 'part' }>) {
  const mapPath = { workspaceId: frame.workspaceId, surfaceId: frame.surfaceId, slug, path }
  return { mapPath, keys: uploadKeys(mapPath), path, part, claim: { sha256, size: frame.body.length } }
}

/** Frees the number of a part that is refused without being read, so that its client can send it again. */
export async function forgetPart(
  redis: Redis,
  frame: PayloadFrame,
  job: Extract<SourceMapJob, { kind: 'part' }>,
): Promise<void> {
  await givePartBack(redis, claimedPart(frame, job))
}
