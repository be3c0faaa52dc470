import type { Redis } from 'ioredis'

/** The ids of a workspace's surfaces, from the names of their records (shared/control-store.ts). Walks the keys of this Redis. */
export async function findSurfaceIds(redis: Redis, workspaceId: string): Promise<string[]> {
  const prefix = `penstock:workspace:${workspaceId}:surface:`
  const ids = new Set<string>()
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 10_000)
    cursor = next
    for (const key of keys) ids.add(key.slice(prefix.length).split(':')[0] ?? '')
  } while (cursor !== '0')
  return [...ids].sort()
}
