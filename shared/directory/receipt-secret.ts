import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type ReceiptSecret, receiptSecretSchema } from '../../schemas/records/directory.ts'
import { TransientError } from '../runtime/errors.ts'
import { emptied, isEmptied } from './emptied.ts'
import { directoryKeys, parseRecord } from './record.ts'

const KEY = directoryKeys.receiptSecret

/** Reads the secret that seals receipt ids; undefined before the first edge has started. Throws a DirectoryRecordError. */
export async function readReceiptSecret(redis: Redis): Promise<Buffer | undefined> {
  const text = await redis.get(KEY)
  return text === null ? undefined : Buffer.from(parseRecord(KEY, text, receiptSecretSchema).secret, 'hex')
}

/**
 * Reads the secret, and creates it if it is missing; only one of several concurrent processes does so. `held` is the secret
 * that the caller knows, which is restored if Redis has lost it. An existing secret needs no write, so that it can be read
 * from a Redis that is full. Throws a TransientError if the directory is empty and `isNew` denies that it is a new one: its
 * absence marks a directory that has lost everything (`isEmptied`).
 */
export async function ensureReceiptSecret(
  redis: Redis,
  held: Buffer = randomBytes(32),
  isNew: () => Promise<boolean> = async () => true,
): Promise<Buffer> {
  const known = await readReceiptSecret(redis)
  if (known !== undefined) return known
  if ((await isEmptied(redis)) && !(await isNew())) throw emptied()
  const record: ReceiptSecret = { version: 1, secret: held.toString('hex') }
  await redis.set(KEY, JSON.stringify(record), 'NX')
  const made = await readReceiptSecret(redis)
  if (made === undefined) throw new TransientError('the receipt secret was deleted right after it was created')
  return made
}
