import type { Health } from '../shared/runtime/process/health.ts'

/** Checks of the stores. Each returns why the store cannot be used, or undefined. */
interface StoreChecks {
  readonly directory: () => string | undefined
  readonly clickhouse: () => Promise<string | undefined>
  readonly schema: () => string | undefined
  readonly installation: () => string | undefined
}

/**
 * Returns the readiness of an API. Once ready, it stays ready while a store is unavailable or the schema differs: a 503 that names
 * the reason is better than no response, and the directory can be read and changed without ClickHouse and without one of its
 * tables. It is not ready while its stores belong to different installations, because it would show data of strangers.
 */
export function createReadiness({ directory, clickhouse, schema, installation }: StoreChecks): () => Promise<Health> {
  let wasReady = false
  return async () => {
    if (!wasReady) {
      const fault = directory() ?? (await clickhouse()) ?? schema()
      if (fault !== undefined) return fault
      wasReady = true
    }
    const fault = installation()
    if (fault !== undefined) return fault
    const differs = schema()
    return differs === undefined || { note: differs }
  }
}
