import { formatBytes } from '../../schemas/http/limits.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { MIB } from '../../schemas/units.ts'
import { UPLOAD_LIFETIME_S } from './upload-keys.ts'

/**
 * Memory of Redis that the uploads of one workspace may take, in bytes: declared maps, single uploads and the claims of parts,
 * those that a manifest keeps included. A release with 100,000 declared maps takes a fifth of it.
 */
export const UPLOADS_MAX_BYTES = 256 * MIB
/** Memory of Redis that the records of completions of one workspace may take, in bytes: about 28,000 completions in a day. */
export const COMPLETIONS_MAX_BYTES = 16 * MIB

/** Estimated memory of an entry of a hash, besides its texts. */
export const ENTRY_BYTES = 100
/** Estimated memory of a hash, besides its entries. */
export const HASH_BYTES = 200
/** Estimated memory of the record of a completion, besides its key. Measured: 600 bytes with a key of 190. */
export const RECORD_BYTES = 400

/**
 * Lua that defines `claimsBytes(key, parts)`, the estimated memory of the claims of one path. Measured: 1,010 bytes with a
 * key of 190, and 230 for each further part.
 */
export const CLAIMS_BYTES = `
local function claimsBytes(key, parts)
  return 550 + #key + 250 * parts
end
`

/** Bytes of the longest staged member of a map. */
const STAGED_MEMBER_BYTES = 40
/**
 * Lua that defines `declaredBytes(path, record)`, the estimated memory of a declared path with a record of this length: an
 * entry of the declared maps, and one of the staged maps if it is to be uploaded.
 */
export const DECLARED_BYTES = `
local function declaredBytes(path, record)
  return ${2 * ENTRY_BYTES + STAGED_MEMBER_BYTES} + #path + record
end
`

/**
 * Returns the Redis keys of what the uploads of a workspace take. They have the hash tags of the uploads (`uploadKeys`).
 *
 * - sums: release → bytes of its uploads that expire, and `total` (hash)
 * - ends: releases, by the second at which the last of these uploads expires
 * - sealed: release → bytes of its claims that a manifest keeps, and `total` (hash)
 * - completions: sums and ends of the records of completions
 */
export function uploadBudgetKeys(workspaceId: string) {
  const maps = `penstock:{source-maps.0}:upload-budget:${workspaceId}`
  const completions = `penstock:{completions.0}:upload-budget:${workspaceId}`
  return {
    sums: maps,
    ends: `${maps}:ends`,
    sealed: `${maps}:sealed`,
    completions: { sums: completions, ends: `${completions}:ends` },
  }
}

/** Returns the name of a release in the budget of its workspace. The slug may be any text of a client. */
export function budgetMember({ surfaceId, slug }: { readonly surfaceId: string; readonly slug: string }): string {
  return `${surfaceId}/${slug}`
}

/** Lua that defines `lift(sums, release, bytes)`, which takes bytes of a release off the sums, as far as they are charged. */
export const LIFT = `
local function lift(sums, release, bytes)
  local charged = tonumber(redis.call('HGET', sums, release) or '0')
  if charged <= bytes then redis.call('HDEL', sums, release) end
  if charged == 0 then return end
  if charged > bytes then redis.call('HINCRBY', sums, release, -bytes) end
  redis.call('HINCRBY', sums, 'total', -math.min(charged, bytes))
end
`

/**
 * Lua that defines `add(sums, ends, release, bytes)` and `charge(sums, ends, release, bytes, limit)`, which adds the bytes
 * unless the sum would exceed the limit, and returns whether it did. Uploads are charged until 24 h after the last one of
 * their release, when all of them have expired. At most 100 releases that have expired are taken off in one call.
 */
export const CHARGE = `
${LIFT}
local function add(sums, ends, release, bytes)
  redis.call('HINCRBY', sums, 'total', bytes)
  redis.call('HINCRBY', sums, release, bytes)
  redis.call('ZADD', ends, redis.call('TIME')[1] + ${UPLOAD_LIFETIME_S}, release)
  redis.call('EXPIRE', sums, ${2 * UPLOAD_LIFETIME_S})
  redis.call('EXPIRE', ends, ${2 * UPLOAD_LIFETIME_S})
end
local function charge(sums, ends, release, bytes, limit)
  local now = tonumber(redis.call('TIME')[1])
  for _, ended in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 100)) do
    lift(sums, ended, math.huge)
    redis.call('ZREM', ends, ended)
  end
  local total = tonumber(redis.call('HGET', sums, 'total') or '0')
  if total + bytes > limit then return false end
  add(sums, ends, release, bytes)
  return true
end
`

/**
 * Lua that defines `chargeUpload(sums, ends, sealed, release, bytes)`: as `charge`, with the claims that manifests keep in
 * the sum.
 */
export const CHARGE_UPLOAD = `
${CHARGE}
local function chargeUpload(sums, ends, sealed, release, bytes)
  local kept = tonumber(redis.call('HGET', sealed, 'total') or '0')
  return charge(sums, ends, release, bytes, ${UPLOADS_MAX_BYTES} - kept)
end
`

/** Returns the problem of a request whose field would bring the uploads of its workspace over the limit. */
export function overUploadBudget(field: 'files' | 'path'): Problem {
  return {
    code: 'INGEST_BACKPRESSURE',
    message:
      `${field} must bring the uploads of the workspace to at most ${formatBytes(UPLOADS_MAX_BYTES)} of memory:` +
      ' delete releases, or wait until 24 hours after the last upload of a release',
    retryAfterSeconds: 60,
  }
}

/** The problem of a completion whose record would bring those of its workspace over the limit. */
export const OVER_COMPLETION_BUDGET: Problem = {
  code: 'INGEST_BACKPRESSURE',
  message:
    'files must bring the completions of the workspace in the last 24 hours to at most ' +
    `${formatBytes(COMPLETIONS_MAX_BYTES)} of memory: delete releases, or retry later`,
  retryAfterSeconds: 60,
}
