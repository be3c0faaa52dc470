import { errorMessage, TransientError } from '../../shared/runtime/errors.ts'

/** The stores of an installation, with the settings that lead to them. */
const STORES = {
  directory: 'the Redis of the directory (DIRECTORY_REDIS_URL)',
  queues: 'the Redis of the queues (REDIS_URL)',
  clickhouse: 'ClickHouse (CLICKHOUSE_URL, CLICKHOUSE_DATABASE)',
  objects: 'the bucket (S3_ENDPOINT, S3_BUCKET)',
  target: 'the bucket of the backups (S3_ENDPOINT, S3_BUCKET or --bucket)',
} as const

/** Runs work on a store. An error that it throws becomes a TransientError that names the store. */
export async function atStore<T>(store: keyof typeof STORES, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const message = errorMessage(error)
    throw new TransientError(message.includes(STORES[store]) ? message : `${STORES[store]}: ${message}`, {
      cause: error,
    })
  }
}
