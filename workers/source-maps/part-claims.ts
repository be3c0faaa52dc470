import type { Redis } from 'ioredis'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { budgetMember, CHARGE, CLAIMS_BYTES, LIFT, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { UPLOAD_LIFETIME_S, type UploadKeys } from '../../shared/queue/upload-keys.ts'

/** Digest and size of some bytes. */
export interface Digested {
  /** SHA-256 in hex. */
  readonly sha256: string
  readonly size: number
}

/** The claim of one part of a map: the bytes that its number is reserved for. */
interface PartClaim extends Digested {
  readonly part: number
  /** Whether the object of the part was written. It is deleted once a manifest names the assembled map. */
  readonly stored: boolean
}

/** The parts that were sent of one map. */
export interface PartClaims {
  /** In the order of their numbers. */
  readonly parts: readonly PartClaim[]
  /** The map that was assembled from exactly these parts. */
  readonly assembled: Digested | undefined
}

/** Parses the Redis hash of the parts of one path (`shared/queue/upload-keys.ts`). Returns undefined if no part is claimed. */
export function parsePartClaims(fields: Readonly<Record<string, string>>): PartClaims | undefined {
  const parts: PartClaim[] = []
  for (const [name, value] of Object.entries(fields)) {
    const digested = /^\d+$/.test(name) ? parseDigested(value) : undefined
    if (digested) parts.push({ part: Number(name), stored: `stored:${name}` in fields, ...digested })
  }
  if (parts.length === 0) return undefined
  parts.sort((a, b) => a.part - b.part)
  const [count, ...rest] = (fields.assembled ?? '').split(':')
  const isOfThese = Number(count) === parts.length && missingParts(parts).length === 0
  return { parts, assembled: isOfThese ? parseDigested(rest.join(':')) : undefined }
}

/** Returns the numbers that are missing between 0 and the last part, at most the first `most` of them. */
export function missingParts(parts: readonly { part: number }[], most = 10): number[] {
  const missing: number[] = []
  let next = 0
  for (const { part } of parts) {
    for (; next < part && missing.length < most; next++) missing.push(next)
    next = part + 1
  }
  return missing
}

/** Returns the text form of a digest and size. */
export const digestedText = ({ sha256, size }: Digested) => `${sha256}:${size}`

/** Parses the text form of a digest and size. Returns undefined for any other text. */
export function parseDigested(text: string): Digested | undefined {
  const match = /^([0-9a-f]{64}):(\d+)$/.exec(text)
  return match ? { sha256: match[1] as string, size: Number(match[2]) } : undefined
}

/**
 * Lua that defines `settle(part, lifetime)`: the payload of a part waits no longer. When none waits, the claims expire unless a
 * manifest keeps them. KEYS parts, paths with claims.
 */
const SETTLE = `
local function settle(part, lifetime)
  if redis.call('HDEL', KEYS[1], 'waits:' .. part) == 0 then return end
  if redis.call('HINCRBY', KEYS[1], 'waiting', -1) > 0 then return end
  redis.call('HDEL', KEYS[1], 'waiting')
  if redis.call('HEXISTS', KEYS[1], 'sealed') == 1 then return end
  redis.call('EXPIRE', KEYS[1], lifetime)
  redis.call('SADD', KEYS[2], string.sub(KEYS[1], -64))
  redis.call('EXPIRE', KEYS[2], lifetime)
end
`

/** KEYS parts, paths with claims; ARGV part, claim, lifetime. */
const CONFIRM_PART = `
${SETTLE}
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'stored:' .. ARGV[1], redis.call('TIME')[1])
settle(ARGV[1], ARGV[3])
return 1
`

/** A part of a map of a release, and the bytes that claim it. */
interface ClaimedPart {
  readonly keys: UploadKeys
  readonly path: string
  readonly part: number
  readonly claim: Digested
}

/** Marks a claimed part as stored. Returns false if its claim was replaced or removed with its release. */
export async function confirmPart(redis: Redis, { keys, path, part, claim }: ClaimedPart): Promise<boolean> {
  const args = [part, digestedText(claim), UPLOAD_LIFETIME_S]
  return (await redis.eval(CONFIRM_PART, 2, keys.parts(path), keys.claimed, ...args)) === 1
}

/** KEYS parts, paths with claims; ARGV part, claim, lifetime, size. */
const GIVE_CLAIM_BACK = `
${SETTLE}
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
settle(ARGV[1], ARGV[3])
if redis.call('HEXISTS', KEYS[1], 'stored:' .. ARGV[1]) == 1 then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HINCRBY', KEYS[1], 'bytes', -ARGV[4])
return 1
`

/** Frees the number of a part that cannot be stored. Returns false if the claim was replaced or the part is stored. */
export async function givePartBack(redis: Redis, { keys, path, part, claim }: ClaimedPart): Promise<boolean> {
  const args = [part, digestedText(claim), UPLOAD_LIFETIME_S, claim.size]
  return (await redis.eval(GIVE_CLAIM_BACK, 2, keys.parts(path), keys.claimed, ...args)) === 1
}

/** KEYS parts; ARGV the record of the assembled map, then the claims of the parts in order. */
const RECORD_ASSEMBLED = `
for i = 2, #ARGV do
  if redis.call('HGET', KEYS[1], i - 2) ~= ARGV[i] then return 0 end
end
redis.call('HSET', KEYS[1], 'assembled', ARGV[1])
return 1
`

/** Records that the map of these parts is stored, so that they are no longer needed. Returns false if a claim has changed. */
export async function recordAssembled(
  redis: Redis,
  key: string,
  parts: readonly Digested[],
  map: Digested,
): Promise<boolean> {
  const record = `${parts.length}:${digestedText(map)}`
  return (await redis.eval(RECORD_ASSEMBLED, 1, key, record, ...parts.map(digestedText))) === 1
}

/** The claims of a release. */
export interface ReleaseClaims {
  readonly redis: Redis
  readonly releaseKey: ReleaseKey
  readonly keys: UploadKeys
}

/**
 * KEYS paths with claims, sealed paths, bytes of claims that expire, bytes of sealed claims, then parts of each path; ARGV name
 * of the release in the budget, sequence, then the SHA-256 that the manifest names for each path. Returns the number of parts
 * of each.
 */
const SEAL_PARTS = `
${LIFT}
${CLAIMS_BYTES}
local counts = {}
local kept = 0
for i = 1, #KEYS - 4 do
  local key = KEYS[i + 4]
  counts[i] = 0
  local count, sha256 = string.match(redis.call('HGET', key, 'assembled') or '', '^(%d+):(%x+):')
  if sha256 == ARGV[i + 2] then
    local sealed = redis.call('HGET', key, 'sealed')
    if not sealed or tonumber(sealed) < tonumber(ARGV[2]) then redis.call('HSET', key, 'sealed', ARGV[2]) end
    redis.call('PERSIST', key)
    local path = string.sub(key, -64)
    redis.call('SREM', KEYS[1], path)
    if redis.call('SADD', KEYS[2], path) == 1 then kept = kept + claimsBytes(key, count) end
    counts[i] = tonumber(count)
  end
end
if kept > 0 then
  lift(KEYS[3], ARGV[1], kept)
  redis.call('HINCRBY', KEYS[4], ARGV[1], kept)
  redis.call('HINCRBY', KEYS[4], 'total', kept)
end
return counts
`

/**
 * Keeps the claims of the parts of these maps for as long as a manifest names the maps. Returns the number of parts of
 * each map.
 */
export async function sealParts(
  { redis, releaseKey, keys }: ReleaseClaims,
  sequence: number,
  maps: readonly { path: string; sha256: string }[],
): Promise<number[]> {
  const { sums, sealed } = uploadBudgetKeys(releaseKey.workspaceId)
  const names = [keys.claimed, keys.sealed, sums, sealed, ...maps.map(({ path }) => keys.parts(path))]
  const args = [budgetMember(releaseKey), sequence, ...maps.map(({ sha256 }) => sha256)]
  return (await redis.eval(SEAL_PARTS, names.length, ...names, ...args)) as number[]
}

/**
 * KEYS paths with claims, sealed paths, the budget of the workspace (bytes of claims that expire, ends, bytes of sealed
 * claims), then parts of each path; ARGV name of the release in the budget, sequence, lifetime. Claims that a later completion
 * has sealed again are left alone.
 */
const UNSEAL_PARTS = `
${CHARGE}
${CLAIMS_BYTES}
local freed = 0
for i = 6, #KEYS do
  local key = KEYS[i]
  local sealed, assembled = unpack(redis.call('HMGET', key, 'sealed', 'assembled'))
  if sealed and tonumber(sealed) <= tonumber(ARGV[2]) then
    redis.call('HDEL', key, 'sealed')
    redis.call('EXPIRE', key, ARGV[3])
    local path = string.sub(key, -64)
    redis.call('SADD', KEYS[1], path)
    redis.call('EXPIRE', KEYS[1], ARGV[3])
    if redis.call('SREM', KEYS[2], path) == 1 then
      freed = freed + claimsBytes(key, string.match(assembled or '', '^%d+') or 0)
    end
  end
end
if freed > 0 then
  lift(KEYS[5], ARGV[1], freed)
  add(KEYS[3], KEYS[4], ARGV[1], freed)
end
`

/** Lets claims expire whose maps the manifest of this sequence does not name. */
export async function unsealParts(
  { redis, releaseKey, keys }: ReleaseClaims,
  sequence: number,
  paths: readonly string[],
): Promise<void> {
  const { sums, ends, sealed } = uploadBudgetKeys(releaseKey.workspaceId)
  const names = [keys.claimed, keys.sealed, sums, ends, sealed, ...paths.map(path => keys.parts(path))]
  await redis.eval(UNSEAL_PARTS, names.length, ...names, budgetMember(releaseKey), sequence, UPLOAD_LIFETIME_S)
}
