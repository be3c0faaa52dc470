import type { Redis } from 'ioredis'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { type DeclaredMap, UPLOAD_LIFETIME_S, uploadKeys } from '../../shared/queue/upload-keys.ts'

/** Paths that may be declared for one release and wait for its completion. */
export const MAX_DECLARED_PATHS = 100_000

/** KEYS declared; ARGV most paths, lifetime, then path and record by turns. All are kept or none: then the answer is 0. */
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

/** Keeps what a sign call has declared, for 24 h from the last one. False when there would be too many paths. */
export async function declareMaps(
  redis: Redis,
  place: ReleaseKey,
  maps: ReadonlyMap<string, DeclaredMap>,
  maxPaths = MAX_DECLARED_PATHS,
): Promise<boolean> {
  const pairs = [...maps].flatMap(([path, map]) => [path, JSON.stringify(map)])
  const answer = await redis.eval(DECLARE, 1, uploadKeys(place).signed, maxPaths, UPLOAD_LIFETIME_S, ...pairs)
  return answer === 1
}
