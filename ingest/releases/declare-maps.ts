import type { Redis } from 'ioredis'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { type DeclaredMap, UPLOAD_LIFETIME_S, uploadKeys } from '../../shared/queue/upload-keys.ts'

/** The most paths that may be declared for one release until its completion. */
export const MAX_DECLARED_PATHS = 100_000

/**
 * KEYS declared maps; ARGV path limit, lifetime, then a path and its record alternately. Stores all of them and returns 1,
 * or none and returns 0.
 */
const DECLARE = `
local paths = redis.call('HLEN', KEYS[1])
if paths + (#ARGV - 2) / 2 > tonumber(ARGV[1]) then
  for i = 3, #ARGV, 2 do paths = paths + 1 - redis.call('HEXISTS', KEYS[1], ARGV[i]) end
  if paths > tonumber(ARGV[1]) then return 0 end
end
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
`

/**
 * Stores the maps that a sign call declares, until 24 h after the release's last sign call. Returns false, and stores
 * nothing, when the release would have too many paths.
 */
export async function declareMaps(
  redis: Redis,
  release: ReleaseKey,
  maps: ReadonlyMap<string, DeclaredMap>,
  maxPaths = MAX_DECLARED_PATHS,
): Promise<boolean> {
  const pairs = [...maps].flatMap(([path, map]) => [path, JSON.stringify(map)])
  const stored = await redis.eval(DECLARE, 1, uploadKeys(release).signed, maxPaths, UPLOAD_LIFETIME_S, ...pairs)
  return stored === 1
}
