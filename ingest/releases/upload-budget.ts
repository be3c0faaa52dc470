import type { Problem } from '../../schemas/http/problems.ts'
import { UPLOAD_LIFETIME_S } from '../../shared/queue/upload-keys.ts'

/**
 * Memory of Redis that the declared maps and the claims of parts of one workspace may take, in bytes. A release with 100,000
 * declared maps takes a third of it.
 */
export const UPLOADS_MAX_BYTES = 128 * 1024 * 1024

/** Estimated memory of an entry of a hash, besides its texts. */
export const ENTRY_BYTES = 100
/** Estimated memory of a hash, besides its entries. */
export const HASH_BYTES = 200

/**
 * Returns the Redis keys of what the uploads of a workspace take. They have the hash tag of the uploads (`uploadKeys`).
 *
 * - sums: release → bytes of its uploads, and `total` (hash)
 * - ends: releases, by the second at which the last of their uploads expires
 */
export function uploadBudgetKeys(workspaceId: string): { readonly sums: string; readonly ends: string } {
  const root = `penstock:{source-maps.0}:upload-budget:${workspaceId}`
  return { sums: root, ends: `${root}:ends` }
}

/** Returns the name of a release in the budget of its workspace. The slug may be any text of a client. */
export function budgetMember({ surfaceId, slug }: { readonly surfaceId: string; readonly slug: string }): string {
  return `${surfaceId}/${slug}`
}

/**
 * Lua that defines `charge(sums, ends, release, bytes)`. It returns false, and charges nothing, when the workspace has
 * UPLOADS_MAX_BYTES. Uploads are charged until 24 h after the last one of their release, when all of them have expired. At
 * most 100 releases that have expired are taken off in one call.
 */
export const CHARGE = `
local function charge(sums, ends, release, bytes)
  local now = tonumber(redis.call('TIME')[1])
  for _, ended in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 100)) do
    redis.call('HINCRBY', sums, 'total', -tonumber(redis.call('HGET', sums, ended) or '0'))
    redis.call('HDEL', sums, ended)
    redis.call('ZREM', ends, ended)
  end
  local total = tonumber(redis.call('HGET', sums, 'total') or '0')
  if total + bytes > ${UPLOADS_MAX_BYTES} then return false end
  redis.call('HINCRBY', sums, 'total', bytes)
  redis.call('HINCRBY', sums, release, bytes)
  redis.call('ZADD', ends, now + ${UPLOAD_LIFETIME_S}, release)
  redis.call('EXPIRE', sums, ${2 * UPLOAD_LIFETIME_S})
  redis.call('EXPIRE', ends, ${2 * UPLOAD_LIFETIME_S})
  return true
end
`

/** The problem of a workspace whose uploads take too much memory. */
export const OVER_UPLOAD_BUDGET: Problem = {
  code: 'INGEST_BACKPRESSURE',
  message:
    'the declared source maps and the parts of the workspace of the last 24 hours take too much memory; declare fewer, or retry later',
  retryAfterSeconds: 60,
}
