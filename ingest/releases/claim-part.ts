import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { SourceMapJob } from '../../schemas/queues/source-maps.ts'
import { HOUR_S } from '../../schemas/units.ts'
import type { AnswerableRequest } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { budgetMember, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { UPLOAD_LIFETIME_S, uploadKeys } from '../../shared/queue/upload-keys.ts'
import type { AdmittedRequest } from '../commit/sink.ts'

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
  /** Set if the release is not registered. */
  readonly isUnknown?: true | undefined
  /** Unix time of the request's arrival. */
  readonly receivedAtMs: number
  readonly body: Buffer
  readonly request: AnswerableRequest
}

const CLAIM_PART = queueScript('uploads/claim-part')
const FORGET_SEALED = queueScript('uploads/forget-sealed')

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
  return (await FORGET_SEALED.run(redis, keys, [budgetMember(release), seal])) === 1
}

/** A claim, or the problem of a part that could not be judged. */
export type ClaimedPart =
  | { readonly ok: true; readonly outcome: ClaimOutcome }
  | { readonly ok: false; readonly problem: Problem }

/**
 * Claims a part and enqueues its bytes, both or neither. Copies the body before it returns.
 */
export async function claimPart(
  admitted: Pick<AdmittedRequest, 'store'>,
  release: ReleaseKey,
  { path, part, isUnknown, receivedAtMs, body, request }: SourceMapPart,
): Promise<ClaimedPart> {
  const { workspaceId, surfaceId, slug } = release
  const keys = uploadKeys(release)
  const budget = uploadBudgetKeys(workspaceId)
  const sha256 = hash('sha256', body)
  const attributes: SourceMapJob = { kind: 'part', slug, isUnknown, path, part, sha256 }
  const frame = {
    workspaceId,
    surfaceId,
    receivedAtMs,
    contentType: 'application/octet-stream',
    contentEncoding: 'identity',
    attributes: JSON.stringify(attributes),
    body,
  } as const
  const stored = await admitted.store(frame, request, {
    script: CLAIM_PART,
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
  })
  if (!stored.ok) return stored
  return { ok: true, outcome: stored.result as ClaimOutcome }
}
