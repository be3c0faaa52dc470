import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'

/** The mark of the latest deletion. Absent before the first. */
const LATEST_DELETION_KEY = 'penstock:{installation}:latest-deletion'

/**
 * Marks that rows of stored requests are about to be deleted: after they are counted in `deleted_rows`, and before they are gone.
 * If the mark is the same before and after a read, every row that was gone by then had been counted before the read began.
 */
export async function markDeletion(redis: Redis): Promise<void> {
  await redis.set(LATEST_DELETION_KEY, randomUUID())
}

/** Returns the mark of the latest deletion in the installation, or an empty text. */
export async function latestDeletion(redis: Redis): Promise<string> {
  return (await redis.get(LATEST_DELETION_KEY)) ?? ''
}
