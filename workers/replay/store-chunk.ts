import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ReplayChunk } from '../../schemas/queues/jobs.ts'
import { type ReplayUpload, replayUploadSchema } from '../../schemas/queues/jobs.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import { replayKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectHead, ObjectStore } from '../../shared/object-store/types.ts'
import { replayedFrom } from '../../shared/queue/letters/replayed-letter.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import type { ChunkFacts, Inspector } from './inspect-chunk.ts'

const compress = promisify(gzip)

/** Dependencies of storing a replay chunk. */
export interface StoreChunkDeps {
  readonly objects: Pick<ObjectStore, 'putIfAbsent' | 'head'>
  readonly retry: Retry
  readonly inspect: Inspector
}

/** The outcome of storing one replay chunk. */
export type StoredChunk =
  /** The object exists and belongs to this upload, so this upload adds its row to the index. */
  | { readonly outcome: 'stored'; readonly chunk: ReplayChunk }
  /** Another upload has stored the same bytes before and adds their row to the index. */
  | ({ readonly outcome: 'repeated' } & Pick<ChunkFacts, 'truncatedLines'>)
  | { readonly outcome: 'refused'; readonly reason: Reason }

/**
 * Stores one upload, gzipped, unless an object with its key exists. The metadata of the object names its upload
 * (`payload`: the job, and the index of the frame in it). An upload whose put succeeded without a response therefore
 * recognizes its own object, and never mistakes the object of another upload for its own.
 */
export async function storeChunk(
  deps: StoreChunkDeps,
  jobId: string,
  index: number,
  frame: PayloadFrame,
): Promise<StoredChunk> {
  const encoding = frame.contentEncoding
  if (encoding !== 'gzip' && encoding !== 'identity')
    throw new TypeError(`content encoding ${encoding} is not allowed for a replay chunk`)
  const upload = replayUploadSchema.parse(JSON.parse(frame.attributes))
  const inspected = await deps.inspect(frame.body, encoding)
  if (!inspected.ok) return refused(inspected.reason)
  const { facts, mended } = inspected
  const objectKey = replayKey({ ...frame, ...upload })
  // A replayed upload is the same upload: an object that it has stored before it became a dead letter is its own.
  const { jobId: uploadJob, index: uploadIndex } = replayedFrom(frame) ?? { jobId, index }
  const payload = `${uploadJob}-${uploadIndex}`
  const isAsSent = mended === undefined && encoding === 'gzip'
  const body = isAsSent ? frame.body : mended === undefined ? await compress(frame.body) : Buffer.from(mended.buffer)
  const metadata = objectMetadata(upload, frame, facts, payload)
  try {
    const sha256 = isAsSent ? facts.sentSha256 : undefined
    const put = () => deps.objects.putIfAbsent(objectKey, body, { contentType: 'application/gzip', metadata, sha256 })
    if ((await deps.retry('store a replay chunk', put)) === 'stored') {
      return { outcome: 'stored', chunk: describe(upload, facts, objectKey, body.length) }
    }
    const head = () => deps.objects.head(objectKey)
    const present = await deps.retry('look up a stored replay chunk', head)
    // Deleted since the put. The job starts over and stores the chunk.
    if (present === undefined) throw new TransientError('the object that was in the way was deleted')
    if (present.metadata.payload === payload) {
      return { outcome: 'stored', chunk: describe(upload, storedFacts(facts, present), objectKey, present.size) }
    }
    if (isSame(present.metadata, facts)) return { outcome: 'repeated', ...truncated(facts) }
    return refused({ label: 'replay_conflict', detail: `other bytes are stored as ${objectKey}` })
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    return refused({ label: 'refused_by_object_store', detail: error.message })
  }
}

const refused = (reason: Reason): StoredChunk => ({ outcome: 'refused', reason })

const truncated = ({ truncatedLines }: ChunkFacts) => (truncatedLines === undefined ? {} : { truncatedLines })

/** Whether an object is of these bytes as sent, or of the same events in other bytes. */
function isSame(metadata: ObjectHead['metadata'], { sha256, sentSha256 }: ChunkFacts): boolean {
  return metadata['sent-sha256'] === sentSha256 || metadata.sha256 === sha256
}

/** Facts of the object of an earlier attempt. It has other bytes if the rules of scrubbing have changed since. */
function storedFacts(facts: ChunkFacts, { metadata }: ObjectHead): ChunkFacts {
  const { sha256 = facts.sha256, 'decompressed-bytes': bytes = facts.decompressedBytes } = metadata
  return { ...facts, sha256, decompressedBytes: Number(bytes) }
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

/** S3 stores 2 KB of metadata, names and values together. The two texts of the client get at most 1,200 bytes of it. */
const TEXT_LIMIT_BYTES = 600

function objectMetadata(
  upload: ReplayUpload,
  frame: PayloadFrame,
  { sha256, sentSha256, decompressedBytes }: ChunkFacts,
  payload: string,
): Record<string, string> {
  const declared = {
    'window-id': metadataText(upload.windowId, TEXT_LIMIT_BYTES) || undefined,
    'segment-id': metadataText(upload.segmentId, TEXT_LIMIT_BYTES) || undefined,
    'first-ts': upload.firstTs,
    'last-ts': upload.lastTs,
    'event-count': upload.eventCount,
    'has-full-snapshot': upload.hasFullSnapshot,
    'activity-count': upload.activityCount,
  }
  const given = Object.entries(declared).filter(([, value]) => value !== undefined)
  return {
    ...Object.fromEntries(given.map(([name, value]) => [name, String(value)])),
    'received-at': new Date(frame.receivedAtMs).toISOString(),
    sha256,
    'sent-sha256': sentSha256,
    'decompressed-bytes': String(decompressedBytes),
    payload,
  }
}

/** Percent-encodes a client's text for the metadata of an object, and cuts it between characters to at most `limitBytes`. */
function metadataText(text: string, limitBytes: number): string {
  let encoded = ''
  for (const character of text.toWellFormed()) {
    const next = encoded + encodeURIComponent(character)
    if (next.length > limitBytes) break
    encoded = next
  }
  return encoded
}
