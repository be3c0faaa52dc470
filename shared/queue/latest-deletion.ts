import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'

/** A text that is another one after each deletion of stored requests. Absent before the first. */
const LATEST_DELETION_KEY = 'penstock:{installation}:latest-deletion'

/**
 * Marks that rows of stored requests are about to be deleted, after they are counted (`deleted_rows`) and before they are gone.
 * Who reads the same text before and after something else has seen all rows that the counts which it reads meanwhile leave out.
 */
export async function markDeletion(redis: Redis): Promise<void> {
  await redis.set(LATEST_DELETION_KEY, randomUUID())
}

/** Returns the mark of the latest deletion in the installation, or an empty text. */
export async function latestDeletion(redis: Redis): Promise<string> {
  return (await redis.get(LATEST_DELETION_KEY)) ?? ''
}
