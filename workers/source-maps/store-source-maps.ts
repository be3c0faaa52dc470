import { type SourceMapJob, sourceMapJobSchema } from '../../schemas/queues/source-maps.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { RefusalLabel } from '../../shared/runtime/reason.ts'
import type { TakenJob } from '../queue/pool.ts'
import { type FrameDeps, type FramePlan, type ProcessedFrame, processFrames } from '../queue/process-frames.ts'
import { forgetPart, type StorePartDeps, storePart } from './store-part.ts'
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
    return upload.kind === 'single' ? processSingle(storeDeps, frame, upload) : processPart(storeDeps, frame, upload)
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
