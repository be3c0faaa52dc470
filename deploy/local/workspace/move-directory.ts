import type { Redis } from 'ioredis'

/**
 * Beginnings of the keys of the directory and the releases. Every other key belongs to a queue. The first is that of
 * current keys, the others those of earlier versions.
 */
const BEGINNINGS = [
  'penstock:{directory}:',
  'penstock:user:',
  'penstock:users',
  'penstock:workspace:',
  'penstock:workspaces',
  'penstock:workspace-slug:',
  'penstock:workspace-credential:',
  'penstock:credential:',
  'penstock:receipt-secret',
]
const SCANNED_KEYS = 5_000

/**
 * Moves the directory and the releases out of the Redis of the queues, where earlier versions of `npm start` kept them. A
 * key is removed there only when the other Redis has confirmed it on disk, so that a start which was killed can be repeated.
 * A key that exists in both stays as it is in `to`: its copy was moved before, and may have changed since.
 */
export async function moveDirectory(from: Redis, to: Redis): Promise<void> {
  let cursor = '0'
  do {
    const [next, keys] = await from.scan(cursor, 'MATCH', 'penstock:*', 'COUNT', SCANNED_KEYS)
    cursor = next
    const owned = keys.filter(key => BEGINNINGS.some(beginning => key.startsWith(beginning)))
    await Promise.all(owned.map(key => moveKey(from, to, key)))
  } while (cursor !== '0')
}

async function moveKey(from: Redis, to: Redis, key: string): Promise<void> {
  const [value, ttlMs] = await Promise.all([from.dumpBuffer(key), from.pttl(key)])
  // The key expired since the scan.
  if (value === null) return
  try {
    await to.restore(key, ttlMs < 0 ? 0 : Math.max(ttlMs, 1), value)
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('BUSYKEY'))) throw error
  }
  await from.unlink(key)
}
