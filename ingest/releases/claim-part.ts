import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { SourceMapJob } from '../../schemas/queues/source-maps.ts'
import { HOUR_S } from '../../schemas/units.ts'
import type { CountedRequest } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { budgetMember, CHARGE_UPLOAD, CLAIMS_BYTES, LIFT, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { UPLOAD_LIFETIME_S, uploadKeys } from '../../shared/queue/upload-keys.ts'
import type { ConditionalSink } from '../commit/conditional-sink.ts'

/**
 * The outcome of a claim.
 *
 * - claimed: the part is enqueued
 * - repeated: the part was sent before with the same bytes
 * - conflict: the part was sent before with other bytes
 * - sealed: a manifest names the map that was assembled from the parts, so the path takes no further part
 * - too_large: the parts would exceed the declared size, or the limit of a map
 * - over_budget: the uploads of the workspace take too much memory
 */
export type ClaimOutcome = 'claimed' | 'repeated' | 'conflict' | 'sealed' | 'too_large' | 'over_budget'

/** A part whose object is older is stored again when it is sent again: objects of uploads may be deleted after two days. */
const TRUSTED_OBJECT_S = UPLOAD_LIFETIME_S + 22 * HOUR_S

/** A part of a source map as it was received. */
export interface SourceMapPart {
  readonly path: string
  readonly part: number
  /** Unix time of the request's arrival. */
  readonly receivedAtMs: number
  readonly body: Buffer
  readonly request: CountedRequest
}

/**
 * KEYS[8] parts of the path, KEYS[9] declared maps, KEYS[10] to [12] budget of the workspace, KEYS[13] paths with claims;
 * ARGV[11] part, [12] claim, [13] size, [14] path, [15] byte limit, [16] age in seconds up to which the object of a part is
 * there, [17] name of the release in the budget. Claims do not expire while a part of them waits in the queue: its worker lets
 * them expire (`workers/source-maps/part-claims.ts`). A sealed hash lives as long as its manifest.
 */
const CLAIM = `
${CHARGE_UPLOAD}
${CLAIMS_BYTES}
local sealed = redis.call('HEXISTS', KEYS[8], 'sealed') == 1
local claim = redis.call('HGET', KEYS[8], ARGV[11])
if claim then
  local now = tonumber(redis.call('TIME')[1])
  local storedAt = tonumber(redis.call('HGET', KEYS[8], 'stored:' .. ARGV[11]) or now)
  if claim ~= ARGV[12] or sealed or now - storedAt <= tonumber(ARGV[16]) then
    refuse()
    if claim ~= ARGV[12] then return 'conflict' end
    return 'repeated'
  end
elseif sealed then
  refuse()
  return 'sealed'
end
local limit = tonumber(ARGV[15])
local declared = redis.call('HGET', KEYS[9], ARGV[14])
if declared then limit = math.min(limit, cjson.decode(declared).size) end
local bytes = tonumber(redis.call('HGET', KEYS[8], 'bytes') or '0') + (claim and 0 or tonumber(ARGV[13]))
if bytes > limit then
  refuse()
  return 'too_large'
end
local before = redis.call('EXISTS', KEYS[8]) == 1 and claimsBytes(KEYS[8], 0) or 0
local added = claimsBytes(KEYS[8], claim and 0 or 1) - before
if not chargeUpload(KEYS[10], KEYS[11], KEYS[12], ARGV[17], added) then
  refuse()
  return 'over_budget'
end
redis.call('HDEL', KEYS[8], 'stored:' .. ARGV[11])
redis.call('HSET', KEYS[8], ARGV[11], ARGV[12], 'bytes', bytes, 'waits:' .. ARGV[11], 1)
redis.call('HINCRBY', KEYS[8], 'waiting', 1)
redis.call('PERSIST', KEYS[8])
redis.call('SADD', KEYS[13], string.sub(KEYS[8], -64))
redis.call('PERSIST', KEYS[13])
accept()
return 'claimed'
`

/**
 * KEYS parts of the path, sealed paths, bytes of sealed claims; ARGV name of the release in the budget, `sealed` as it was read.
 */
const FORGET_SEALED = `
${LIFT}
${CLAIMS_BYTES}
if redis.call('HGET', KEYS[1], 'sealed') ~= ARGV[2] then return 0 end
local parts = string.match(redis.call('HGET', KEYS[1], 'assembled') or '', '^%d+') or 0
redis.call('DEL', KEYS[1])
if redis.call('SREM', KEYS[2], string.sub(KEYS[1], -64)) == 1 then
  lift(KEYS[3], ARGV[1], claimsBytes(KEYS[1], parts))
end
return 1
`

/**
 * Removes the claims of a path that are sealed although their release has no manifest. Returns whether the claim of the part
 * was removed, here or by a request for another part meanwhile. Such claims are of a release that was deleted (sealed by version
 * 0.1, or by a completion that was in progress), or whose manifest an older backup of the directory does not name. The
 * seal is read before the manifest: a completion makes its manifest current, then seals, so claims that are being sealed stay.
 */
export async function forgetSealedClaims(
  redis: Redis,
  release: ReleaseKey,
  { path, part }: Pick<SourceMapPart, 'path' | 'part'>,
  hasManifest: () => Promise<boolean>,
): Promise<boolean> {
  const { parts, sealed } = uploadKeys(release)
  const [seal, claim] = await redis.hmget(parts(path), 'sealed', String(part))
  if (!seal) return claim === null
  if (await hasManifest()) return false
  const keys = [parts(path), sealed, uploadBudgetKeys(release.workspaceId).sealed]
  return (await redis.eval(FORGET_SEALED, keys.length, ...keys, budgetMember(release), seal)) === 1
}

/** A claim, or the problem of a part that could not be judged. */
export type ClaimedPart =
  | { readonly ok: true; readonly outcome: ClaimOutcome }
  | { readonly ok: false; readonly problem: Problem }

/**
 * Claims a part and enqueues its bytes, both or neither. Copies the body before it returns.
 */
export async function claimPart(
  sink: Pick<ConditionalSink, 'store'>,
  release: ReleaseKey,
  { path, part, receivedAtMs, body, request }: SourceMapPart,
): Promise<ClaimedPart> {
  const { workspaceId, surfaceId, slug } = release
  const keys = uploadKeys(release)
  const budget = uploadBudgetKeys(workspaceId)
  const sha256 = hash('sha256', body)
  const attributes: SourceMapJob = { kind: 'part', slug, path, part, sha256 }
  const frame = {
    workspaceId,
    surfaceId,
    receivedAtMs,
    contentType: 'application/octet-stream',
    contentEncoding: 'identity',
    attributes: JSON.stringify(attributes),
    body,
  } as const
  const stored = await sink.store(
    frame,
    {
      lua: CLAIM,
      keys: [keys.parts(path), keys.signed, budget.sums, budget.ends, budget.sealed, keys.claimed],
      args: [
        part,
        `${sha256}:${body.length}`,
        body.length,
        path,
        SOURCE_MAP_MAX_BYTES,
        TRUSTED_OBJECT_S,
        budgetMember(release),
      ],
    },
    request,
  )
  if (!stored.ok) return stored
  return { ok: true, outcome: stored.result as ClaimOutcome }
}
