import type { Redis } from 'ioredis'
import { GIB } from '../../schemas/units.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import {
  budgetMember,
  CHARGE_UPLOAD,
  DECLARED_BYTES,
  HASH_BYTES,
  uploadBudgetKeys,
} from '../../shared/queue/upload-budget.ts'
import {
  type DeclaredMap,
  stagedKeys,
  stagedMember,
  UPLOAD_LIFETIME_S,
  uploadKeys,
} from '../../shared/queue/upload-keys.ts'

/** The most paths that may be declared for one release until its completion. */
export const MAX_DECLARED_PATHS = 100_000

/** The most bytes of maps that a workspace may have declared to upload and not completed. */
export const MAX_STAGED_BYTES = 8 * GIB

/** The outcome of declaring maps. Nothing is stored unless it is `declared`. */
export type Declared = 'declared' | 'too_many_paths' | 'too_many_bytes' | 'over_budget'

/**
 * KEYS declared maps, staged maps of the workspace, their bytes, then the memory budget of the workspace; ARGV path limit,
 * lifetime, byte limit, name of the release in the budget, then a path, its record and its staged member (or nothing) in
 * turn. An object that is declared again counts once. Staged maps that are forgotten make room first, a part of them at a
 * time.
 */
const DECLARE = `
${CHARGE_UPLOAD}${DECLARED_BYTES}
local paths = redis.call('HLEN', KEYS[1])
local memory = paths == 0 and ${HASH_BYTES} or 0
for i = 5, #ARGV, 3 do
  local before = redis.call('HSTRLEN', KEYS[1], ARGV[i])
  if before == 0 then
    paths = paths + 1
    memory = memory + declaredBytes(ARGV[i], 0)
  end
  memory = memory + #ARGV[i + 1] - before
end
if paths > tonumber(ARGV[1]) then return 'too_many_paths' end
local now = tonumber(redis.call('TIME')[1])
local bytes = tonumber(redis.call('GET', KEYS[3]) or '0')
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 4000)) do
  redis.call('ZREM', KEYS[2], member)
  bytes = bytes - tonumber(string.match(member, '^%d+'))
end
local added = 0
for i = 7, #ARGV, 3 do
  if ARGV[i] ~= '' and not redis.call('ZSCORE', KEYS[2], ARGV[i]) then
    added = added + tonumber(string.match(ARGV[i], '^%d+'))
  end
end
local isTooMuch = added > 0 and bytes + added > tonumber(ARGV[3])
local isOverBudget = not isTooMuch and not chargeUpload(KEYS[4], KEYS[5], KEYS[6], ARGV[4], memory)
if not isTooMuch and not isOverBudget then
  bytes = bytes + added
  for i = 5, #ARGV, 3 do
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    if ARGV[i + 2] ~= '' then redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[i + 2]) end
  end
  redis.call('EXPIRE', KEYS[1], ARGV[2])
  redis.call('EXPIRE', KEYS[2], ARGV[2])
end
redis.call('SET', KEYS[3], string.format('%.0f', bytes), 'EX', ARGV[2])
if isOverBudget then return 'over_budget' end
return isTooMuch and 'too_many_bytes' or 'declared'
`

/** Bounds of what may be declared. */
interface DeclareLimits {
  readonly paths: number
  readonly stagedBytes: number
}

const LIMITS: DeclareLimits = { paths: MAX_DECLARED_PATHS, stagedBytes: MAX_STAGED_BYTES }

/**
 * Stores the maps that a sign call declares, until a manifest names them, and at most until 24 h after the release's last sign
 * call.
 */
export async function declareMaps(
  redis: Redis,
  release: ReleaseKey,
  maps: ReadonlyMap<string, DeclaredMap>,
  limits = LIMITS,
): Promise<Declared> {
  const declared = [...maps].flatMap(([path, map]) => {
    const { stagingKey, size } = map
    return [path, JSON.stringify(map), stagingKey === undefined ? '' : stagedMember({ stagingKey, size })]
  })
  const staged = stagedKeys(release.workspaceId)
  const budget = uploadBudgetKeys(release.workspaceId)
  const keys = [uploadKeys(release).signed, staged.objects, staged.bytes, budget.sums, budget.ends, budget.sealed]
  const args = [limits.paths, UPLOAD_LIFETIME_S, limits.stagedBytes, budgetMember(release), ...declared]
  return (await redis.eval(DECLARE, keys.length, ...keys, ...args)) as Declared
}
