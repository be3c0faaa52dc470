import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ReplayChunk } from '../../schemas/queues/jobs.ts'
import { type ReplayUpload, replayUploadSchema } from '../../schemas/queues/jobs.ts'
import { replayKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { metadataText } from '../dead-letters/metadata-text.ts'
import { type ChunkFacts, inspectChunk } from './inspect-chunk.ts'

const compress = promisify(gzip)

export interface StoreChunkDeps {
  readonly objects: Pick<ObjectStore, 'putIfAbsent' | 'head'>
  /** Repeats what fails for a passing reason; throws PermanentErrors. */
  readonly retryUntilStopped: <T>(what: string, work: () => Promise<T>) => Promise<T>
}

export type StoredChunk =
  /** The object is there, and is this upload's: it is to be indexed. */
  | { readonly outcome: 'stored'; readonly chunk: ReplayChunk }
  /** Another upload has stored the same bytes before, and indexes them. */
  | { readonly outcome: 'repeated' }
  | { readonly outcome: 'refused'; readonly reason: string }

/**
 * Stores one upload, gzipped, unless its key is taken. The object says which upload it came from (`payload`: the job and
 * the place in it), so that an upload whose put was answered to nobody finds its own object, and never takes it for
 * another's.
 */
export async function storeChunk(
  deps: StoreChunkDeps,
  jobId: string,
  index: number,
  frame: PayloadFrame,
): Promise<StoredChunk> {
  const encoding = frame.contentEncoding
  if (encoding !== 'gzip' && encoding !== 'identity') throw new TypeError(`a replay chunk cannot be ${encoding}`)
  const upload = replayUploadSchema.parse(JSON.parse(frame.attributes))
  const inspected = await inspectChunk(frame.body, encoding)
  if (!inspected.ok) return { outcome: 'refused', reason: inspected.reason }
  const { facts } = inspected
  const objectKey = replayKey({ ...frame, ...upload })
  const payload = `${jobId}-${index}`
  const body = encoding === 'gzip' ? frame.body : await compress(frame.body)
  const metadata = objectMetadata(upload, frame, facts.sha256, payload)
  try {
    const put = () => deps.objects.putIfAbsent(objectKey, body, { contentType: 'application/gzip', metadata })
    if ((await deps.retryUntilStopped('a replay chunk could not be stored', put)) === 'stored') {
      return { outcome: 'stored', chunk: describe(upload, facts, objectKey, body.length) }
    }
    const head = () => deps.objects.head(objectKey)
    const present = await deps.retryUntilStopped('a stored replay chunk could not be looked at', head)
    // Deleted since; the job starts over, and stores it.
    if (present === undefined) throw new TransientError('the object that was in the way is gone')
    if (present.metadata.payload === payload) {
      return { outcome: 'stored', chunk: describe(upload, facts, objectKey, present.size) }
    }
    if (present.metadata.sha256 === facts.sha256) return { outcome: 'repeated' }
    return { outcome: 'refused', reason: `replay_conflict: other bytes are stored as ${objectKey}` }
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    return { outcome: 'refused', reason: `refused_by_object_store: ${error.message}`.slice(0, 1_000) }
  }
}

function describe(upload: ReplayUpload, facts: ChunkFacts, objectKey: string, storedBytes: number): ReplayChunk {
  const { sessionId, windowId, segmentId, firstTs, lastTs, activityCount = 0 } = upload
  return {
    sessionId,
    windowId,
    segmentId,
    firstTs,
    lastTs,
    activityCount,
    ...facts,
    firstEventMs: facts.firstEventMs ?? firstTs,
    lastEventMs: facts.lastEventMs ?? lastTs,
    storedBytes,
    objectKey,
  }
}

/** S3 keeps 2 KB, names and values together: the two texts of the client get at most 1,200 bytes of them. */
const TEXT_LIMIT_BYTES = 600

function objectMetadata(
  upload: ReplayUpload,
  frame: PayloadFrame,
  sha256: string,
  payload: string,
): Record<string, string> {
  const said = {
    'window-id': metadataText(upload.windowId, TEXT_LIMIT_BYTES) || undefined,
    'segment-id': metadataText(upload.segmentId, TEXT_LIMIT_BYTES) || undefined,
    'first-ts': upload.firstTs,
    'last-ts': upload.lastTs,
    'event-count': upload.eventCount,
    'has-full-snapshot': upload.hasFullSnapshot,
    'activity-count': upload.activityCount,
  }
  const given = Object.entries(said).filter(([, value]) => value !== undefined)
  return {
    ...Object.fromEntries(given.map(([name, value]) => [name, String(value)])),
    'received-at': new Date(frame.receivedAtMs).toISOString(),
    sha256,
    payload,
  }
}
