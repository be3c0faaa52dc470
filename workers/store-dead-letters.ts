import { deadLetterSchema } from '../schemas/jobs.ts'
import { deadLetterKey } from '../shared/object-keys.ts'
import type { ObjectStore } from '../shared/object-store.ts'
import { decodePayload } from '../shared/payload-frame.ts'
import type { PayloadStore } from './payload-store.ts'

/** S3 keeps 2 KB of metadata at most; the rest of a longer reason helps nobody. */
const REASON_LIMIT = 300

/** Writes each request of a dead-letter job to the object store, as it was sent, with its reason as metadata. */
export async function storeDeadLetters(
  deps: { objects: ObjectStore; store: PayloadStore },
  jobId: string,
): Promise<void> {
  const { payload } = await deps.store.look(jobId)
  if (payload === null) return
  const frames = decodePayload(payload)
  for (const frame of frames) {
    const letter = deadLetterSchema.parse(JSON.parse(frame.attributes))
    // The key derives from the request alone: writing it twice leaves one object.
    const key = deadLetterKey({ ...frame, ...letter })
    await deps.objects.put(key, frame.body, {
      contentType: frame.contentType,
      metadata: {
        reason: encodeURIComponent(letter.reason.slice(0, REASON_LIMIT)),
        queue: letter.queue,
        'received-at': new Date(frame.receivedAtMs).toISOString(),
        'content-encoding': frame.contentEncoding,
        ...(letter.attributes === '' ? {} : { attributes: encodeURIComponent(letter.attributes).slice(0, 1_000) }),
      },
    })
  }
  await deps.store.finishJob(jobId, { frames: frames.length, bytes: payload.length })
}
