import type { Redis } from 'ioredis'
import { type SourceMapJob, sourceMapJobSchema } from '../../schemas/queues/source-maps.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { partKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { uploadKeys } from '../../shared/queue/upload-keys.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import type { Reason, RefusalLabel } from '../../shared/runtime/reason.ts'
import type { TakenJob } from '../queue/pool.ts'
import { type FrameDeps, type FramePlan, type ProcessedFrame, processFrames } from '../queue/process-frames.ts'
import { confirmPart, digestedText, givePartBack } from './part-claims.ts'
import { type StoredSingle, type StoreSingleDeps, storeSingle } from './store-single.ts'

const PLAN: FramePlan<SourceMapStats> = {
  queue: 'source-maps',
  concurrency: 4,
  statsOfRefusal: ({ label }) => ({ kind: 'part', outcome: label, storedBytes: 0, deadLettered: true }),
}

/** The outcome of one upload. */
export interface SourceMapStats {
  readonly kind: SourceMapJob['kind']
  /** The label of the refusal if a part was dead-lettered. */
  readonly outcome: StoredSingle['outcome'] | RefusalLabel
  readonly storedBytes: number
  readonly deadLettered: boolean
}

/** Dependencies of storing source maps. */
export interface StoreSourceMapsDeps extends Omit<StorePartDeps & StoreSingleDeps, 'retry'>, FrameDeps {
  /** Reports an upload of a job that this worker finished. */
  readonly onUpload?: (stats: SourceMapStats) => void
}

/** Stores the uploads of a job, then finishes it in one step that moves refused parts to the dead letters. */
export async function storeSourceMaps(deps: StoreSourceMapsDeps, job: TakenJob): Promise<void> {
  const plan = { ...PLAN, onRefused: (frame: PayloadFrame) => giveUp(deps, frame) }
  const uploads = await processFrames(deps, plan, job, async (frame, _index, retry) => {
    const upload = sourceMapJobSchema.parse(JSON.parse(frame.attributes))
    const storeDeps = { ...deps, retry }
    const processed =
      upload.kind === 'single'
        ? await processSingle(storeDeps, frame, upload)
        : await processPart(storeDeps, frame, upload)
    return upload.isUnknown ? { ...processed, counted: { unknown_release: 1 } } : processed
  })
  for (const stats of uploads ?? []) deps.onUpload?.(stats)
}

/** Frees the number of a part that cannot be processed. */
async function giveUp({ redis }: StoreSourceMapsDeps, frame: PayloadFrame): Promise<void> {
  const upload = sourceMapJobSchema.safeParse(parseJson(frame.attributes))
  if (upload.success && upload.data.kind === 'part') await forgetPart(redis, frame, upload.data)
}

/** A refused map is not kept: its client waits for the verdict, and was sent the reason. */
async function processSingle(
  deps: StoreSingleDeps,
  frame: PayloadFrame,
  upload: Extract<SourceMapJob, { kind: 'single' }>,
): Promise<ProcessedFrame<SourceMapStats>> {
  const { retry, hasFailed } = watched(deps.retry)
  const { refusal, ...stored } = await storeSingle({ ...deps, retry }, frame, upload)
  return {
    isReleased: !hasFailed(),
    stats: { kind: 'single', deadLettered: false, ...stored },
    refusal: refusal && { reason: refusal, isDeadLetter: false },
  }
}

/** A refused part becomes a dead letter: its client was sent a success when the edge accepted the part. */
async function processPart(
  deps: StorePartDeps,
  frame: PayloadFrame,
  upload: Extract<SourceMapJob, { kind: 'part' }>,
): Promise<ProcessedFrame<SourceMapStats>> {
  const { retry, hasFailed } = watched(deps.retry)
  const reason = await storePart({ ...deps, retry }, frame, upload)
  if (reason === undefined) {
    return {
      isReleased: !hasFailed(),
      stats: { kind: 'part', outcome: 'stored', storedBytes: frame.body.length, deadLettered: false },
    }
  }
  return {
    stats: { kind: 'part', outcome: reason.label, storedBytes: 0, deadLettered: true },
    refusal: { reason, isDeadLetter: true },
  }
}

/** Wraps a retry so that it reports whether any attempt has failed. */
function watched(retry: Retry): { retry: Retry; hasFailed: () => boolean } {
  let failed = false
  return {
    retry: (operation, attempt) =>
      retry(operation, async () => {
        try {
          return await attempt()
        } catch (error) {
          failed = true
          throw error
        }
      }),
    hasFailed: () => failed,
  }
}

/** Dependencies of storing a part of a source map. */
interface StorePartDeps {
  readonly redis: Redis
  readonly objects: Pick<ObjectStore, 'put'>
  readonly retry: Retry
}

/**
 * Stores a part under the key where its completion looks for it, and marks its claim as stored. A claim that was
 * removed with its release is not renewed. Returns the reason if the part is refused, for example because other bytes
 * have claimed its number since.
 */
async function storePart(
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
async function forgetPart(
  redis: Redis,
  frame: PayloadFrame,
  job: Extract<SourceMapJob, { kind: 'part' }>,
): Promise<void> {
  await givePartBack(redis, claimedPart(frame, job))
}
