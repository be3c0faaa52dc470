import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type ReceiptSecret, receiptSecretSchema } from '../../schemas/records/directory.ts'
import { TransientError } from '../runtime/errors.ts'
import { emptied, isEmptied } from './emptied.ts'
import { directoryKeys, parseRecord } from './record.ts'
import { decideAndCommit } from './transaction.ts'
import { writeReceiptSecret } from './writes.ts'

const KEY = directoryKeys.receiptSecret

/** Reads the secret that seals receipt ids; undefined before the first edge has started. Throws a DirectoryRecordError. */
export async function readReceiptSecret(redis: Redis): Promise<Buffer | undefined> {
  return (await readReceiptSecrets(redis))[0]
}

/**
 * Reads the secret that seals receipt ids and the earlier ones, the newest first, with which receipts of before are read. There
 * is none before the first edge has started. Throws a DirectoryRecordError.
 */
export async function readReceiptSecrets(redis: Redis): Promise<Buffer[]> {
  const record = parseSecret(await redis.get(KEY))
  if (record === undefined) return []
  return [record, ...(record.earlier ?? [])].map(({ secret }) => Buffer.from(secret, 'hex'))
}

function parseSecret(text: string | null): ReceiptSecret | undefined {
  return text === null ? undefined : parseRecord(KEY, text, receiptSecretSchema)
}

/**
 * Replaces the secret by a new one. The old one stays known, with those that were replaced less than `keptMs` before `now` (Unix
 * milliseconds). Returns how many earlier ones are known, or undefined if there is no secret yet.
 */
export function rotateReceiptSecret(
  redis: Redis,
  { now, keptMs }: { readonly now: number; readonly keptMs: number },
): Promise<number | undefined> {
  return decideAndCommit<number | undefined>(redis, async () => {
    const text = await redis.get(KEY)
    const record = parseSecret(text)
    if (text === null || record === undefined) return { result: undefined }
    const kept = (record.earlier ?? []).filter(({ replacedAt }) => Date.parse(replacedAt) >= now - keptMs)
    const earlier = [{ secret: record.secret, replacedAt: new Date(now).toISOString() }, ...kept]
    const { commands } = writeReceiptSecret({ version: 1, secret: randomBytes(32).toString('hex'), earlier })
    return { result: earlier.length, transaction: { guards: [['GET', KEY, text]], commands } }
  })
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
