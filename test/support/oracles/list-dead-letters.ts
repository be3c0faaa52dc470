import { type DeadLetter, deadLetterSchema } from '../../../schemas/queues/dead-letters.ts'
import { decodePayload, type PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import type { S3Access } from '../services/services.ts'
import { listObjects } from './list-objects.ts'

/** A dead letter with the key of its object. Its attributes are those of the request. */
interface ListedLetter extends PayloadFrame, Omit<DeadLetter, 'attributes'> {
  readonly objectKey: string
}

/** Returns every dead letter in the objects below a prefix. */
export async function listDeadLetters(access: S3Access, prefix: string): Promise<ListedLetter[]> {
  const objects = await listObjects(access, prefix)
  return objects.flatMap(({ key, bytes }) => lettersOf(bytes).map(letter => ({ ...letter, objectKey: key })))
}

/** Returns the dead letters in the bytes of an object. */
export function lettersOf(object: Buffer): Omit<ListedLetter, 'objectKey'>[] {
  return decodePayload(object).map(frame => ({ ...frame, ...deadLetterSchema.parse(JSON.parse(frame.attributes)) }))
}
