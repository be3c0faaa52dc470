import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type ReceiptSecret, receiptSecretSchema } from '../../schemas/records/directory.ts'
import { TransientError } from '../runtime/errors.ts'
import { directoryKeys, parseRecord } from './record.ts'

const KEY = directoryKeys.receiptSecret

/** What the ids of receipts are sealed with; undefined before the first edge has started. Throws a DirectoryRecordError. */
export async function readReceiptSecret(redis: Redis): Promise<Buffer | undefined> {
  const text = await redis.get(KEY)
  return text === null ? undefined : Buffer.from(parseRecord(KEY, text, receiptSecretSchema).secret, 'hex')
}

/**
 * The same, made if there is none: of several processes at once one makes it. `held` is put back where it was lost. A
 * Redis that is full takes no writes, and is asked for none where there is one.
 */
export async function ensureReceiptSecret(redis: Redis, held: Buffer = randomBytes(32)): Promise<Buffer> {
  const known = await readReceiptSecret(redis)
  if (known !== undefined) return known
  const record: ReceiptSecret = { version: 1, secret: held.toString('hex') }
  await redis.set(KEY, JSON.stringify(record), 'NX')
  const made = await readReceiptSecret(redis)
  if (made === undefined) throw new TransientError('the secret of receipts was deleted as soon as it was made')
  return made
}
