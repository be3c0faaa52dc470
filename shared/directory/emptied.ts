import type { Redis } from 'ioredis'
import { TransientError } from '../runtime/errors.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { directoryKeys } from './record.ts'

/** Reports whether the directory has neither a workspace nor the receipt secret, which the first edge stores. */
export async function isEmptied(redis: Redis): Promise<boolean> {
  return (await redis.exists(directoryKeys.receiptSecret, directoryKeys.workspaces)) === 0
}

/** Time between two looks at the directory. */
const LOOK_EVERY_MS = 2_000

/** Whether the directory has lost everything, as it was seen last. */
interface FollowedDirectory {
  /** Reason for which the process is not ready, or undefined. */
  readonly fault: string | undefined
  stop(): void
}

/**
 * Looks every two seconds whether the directory has lost everything, so that an edge that runs becomes as unready as one that
 * starts without a directory. While Redis does not answer, the last answer counts.
 */
export function followEmptied(redis: Redis, metrics: Metrics): FollowedDirectory {
  let isEmpty = false
  const look = async () => {
    if (redis.status === 'ready') isEmpty = await isEmptied(redis).catch(() => isEmpty)
  }
  const looking = setInterval(() => void look(), LOOK_EVERY_MS).unref()
  metrics.gauge({
    name: 'penstock_directory_empty',
    help: '1 if the Redis of the directory has neither a workspace nor the secret of receipts, so that every key is refused.',
    collect() {
      this.set(isEmpty ? 1 : 0)
    },
  })
  return {
    get fault() {
      return isEmpty ? emptied().message : undefined
    },
    stop: () => clearInterval(looking),
  }
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
