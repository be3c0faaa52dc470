import type { Redis } from 'ioredis'
import type { SourceMapJob } from '../../schemas/queues/source-maps.ts'
import { partKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { uploadKeys } from '../../shared/queue/upload-keys.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { confirmPart, digestedText, givePartBack } from './part-claims.ts'

export interface StorePartDeps {
  readonly redis: Redis
  readonly objects: Pick<ObjectStore, 'put'>
  /** Repeats what fails for a passing reason; throws PermanentErrors. */
  readonly retryUntilStopped: <T>(what: string, work: () => Promise<T>) => Promise<T>
}

export type StoredPart = { readonly outcome: 'stored' } | { readonly outcome: 'refused'; readonly reason: string }

/**
 * Puts a part where its completion finds it, and says in its claim that it is there. A claim that has run out (the part
 * waited for a day) does not come back; one of other bytes in its place keeps this part out.
 */
export async function storePart(
  deps: StorePartDeps,
  frame: PayloadFrame,
  job: Extract<SourceMapJob, { kind: 'part' }>,
): Promise<StoredPart> {
  const { redis, objects } = deps
  const { slug, path, part, sha256 } = job
  const place = { workspaceId: frame.workspaceId, surfaceId: frame.surfaceId, slug, path }
  const claim = { sha256, size: frame.body.length }
  const claims = uploadKeys(place).parts(path)
  const holding = await redis.hget(claims, String(part))
  if (holding !== null && holding !== digestedText(claim)) {
    return { outcome: 'refused', reason: 'claim_replaced: other bytes have the claim of this part' }
  }
  const put = () => objects.put(partKey(place, part), frame.body, { contentType: 'application/octet-stream' })
  try {
    await deps.retryUntilStopped('a part of a source map could not be stored', put)
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    await givePartBack(redis, claims, part, claim)
    return { outcome: 'refused', reason: `refused_by_object_store: ${error.message}`.slice(0, 1_000) }
  }
  await confirmPart(redis, claims, part, claim)
  return { outcome: 'stored' }
}
