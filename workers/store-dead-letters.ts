import { deadLetterSchema } from '../schemas/jobs.ts'
import { deadLetterKey } from '../shared/object-keys.ts'
import type { ObjectStore } from '../shared/object-store.ts'
import { decodePayload, type PayloadFrame } from '../shared/payload-frame.ts'
import type { PayloadStore } from './payload-store.ts'

/** S3 keeps 2 KB of metadata at most; the rest of a longer text helps nobody. */
const METADATA_TEXT_LIMIT = 800
/** A batch of many small requests may be refused whole: one after the other they would take hours. */
const CONCURRENT_PUTS = 16

export interface DeadLettersDeps {
  readonly objects: ObjectStore
  readonly store: PayloadStore
  /** A sign of life after each object. */
  readonly onStored?: () => void
}

/** Writes each request of a dead-letter job to the object store, as it was sent, with its reason as metadata. */
export async function storeDeadLetters(deps: DeadLettersDeps, jobId: string): Promise<void> {
  const { payload } = await deps.store.look(jobId)
  if (payload === null) return
  const frames = decodePayload(payload)
  const rest = frames.values()
  const putRest = async () => {
    for (const frame of rest) {
      await put(deps.objects, frame)
      deps.onStored?.()
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: CONCURRENT_PUTS }, putRest))
  const failed = ends.find(end => end.status === 'rejected')
  if (failed) throw failed.reason
  await deps.store.finishJob(jobId, { frames: frames.length, bytes: payload.length })
}

function put(objects: ObjectStore, frame: PayloadFrame): Promise<void> {
  const letter = deadLetterSchema.parse(JSON.parse(frame.attributes))
  // The key derives from the request alone: writing it twice leaves one object.
  return objects.put(deadLetterKey({ ...frame, ...letter }), frame.body, {
    contentType: frame.contentType,
    metadata: {
      reason: metadataText(letter.reason),
      queue: letter.queue,
      'received-at': new Date(frame.receivedAtMs).toISOString(),
      'content-encoding': frame.contentEncoding,
      ...(letter.attributes === '' ? {} : { attributes: metadataText(letter.attributes) }),
    },
  })
}

/** Percent-encoded, and cut between characters: a text of the client's may be anything, and no letter may be stuck for it. */
function metadataText(text: string): string {
  let encoded = ''
  for (const character of text.toWellFormed()) {
    const next = encoded + encodeURIComponent(character)
    if (next.length > METADATA_TEXT_LIMIT) break
    encoded = next
  }
  return encoded
}
