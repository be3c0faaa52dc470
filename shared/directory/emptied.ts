import type { Redis } from 'ioredis'
import { TransientError } from '../runtime/errors.ts'
import { directoryKeys } from './record.ts'

/** Reports whether the directory has neither a workspace nor the receipt secret, which the first edge stores. */
export async function isEmptied(redis: Redis): Promise<boolean> {
  return (await redis.exists(directoryKeys.receiptSecret, directoryKeys.workspaces)) === 0
}

/** Returns the error of a directory that has lost everything. Its clients must try again, not drop what they have. */
export function emptied(): TransientError {
  return new TransientError('the directory is empty: restore its backup, or create a workspace')
}

/**
 * Returns lookups that throw a TransientError where they would find nothing in a directory that has lost everything. A client
 * would take "unknown" for an answer and drop its data.
 */
export function unlessEmptied<T extends object>(lookups: T, redis: Redis): T {
  const checked = Object.entries(lookups as Record<string, (...words: unknown[]) => Promise<unknown>>).map(
    ([name, look]) => [
      name,
      async (...words: unknown[]) => {
        const found = await look(...words)
        if (found === undefined && (await isEmptied(redis))) throw emptied()
        return found
      },
    ],
  )
  return Object.fromEntries(checked) as T
}
