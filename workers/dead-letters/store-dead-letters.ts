import { deadLetterSchema } from '../../schemas/queues/jobs.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { metadataText } from '../../shared/object-store/metadata-text.ts'
import { deadLetterKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { decodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { type PayloadStore, sharesOf } from '../queue/payload-store.ts'

/** Bytes of one text in the metadata of an object. S3 stores at most 2 KB of metadata. */
const METADATA_TEXT_LIMIT = 800
/** Objects written at the same time. A refused batch of many small requests would take hours one by one. */
const CONCURRENT_PUTS = 16

/** Dependencies of storing dead letters. */
export interface DeadLettersDeps {
  readonly objects: Pick<ObjectStore, 'put'>
  readonly store: Pick<PayloadStore, 'look' | 'finishJob'>
  /** Runs after each object, as a sign of progress. */
  readonly onStored?: () => void
}

/** Writes each request of a dead-letter job to the object store as it was sent, with the reason in the metadata. */
export async function storeDeadLetters(deps: DeadLettersDeps, jobId: string): Promise<void> {
  const { payload } = await deps.store.look(jobId)
  if (payload === null) return
  const frames = decodePayload(payload)
  await forEachConcurrently(frames, { concurrency: CONCURRENT_PUTS }, async frame => {
    await put(deps.objects, frame)
    deps.onStored?.()
  })
  await deps.store.finishJob(jobId, { frames: frames.length, bytes: payload.length, shares: sharesOf(frames) })
}

function put(objects: DeadLettersDeps['objects'], frame: PayloadFrame): Promise<void> {
  const letter = deadLetterSchema.parse(JSON.parse(frame.attributes))
  // The key derives from the request alone, so writing it twice leaves one object.
  return objects.put(deadLetterKey({ ...frame, ...letter }), frame.body, {
    contentType: frame.contentType,
    metadata: {
      reason: metadataText(letter.reason, METADATA_TEXT_LIMIT),
      queue: letter.queue,
      'received-at': new Date(frame.receivedAtMs).toISOString(),
      'content-encoding': frame.contentEncoding,
      ...(letter.attributes === '' ? {} : { attributes: metadataText(letter.attributes, METADATA_TEXT_LIMIT) }),
    },
  })
}
