import { formatBytes } from '../../schemas/http/limits.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { MIB } from '../../schemas/units.ts'

/**
 * Memory of Redis that the uploads of one workspace may take, in bytes: declared maps, single uploads and the claims of parts,
 * those that a manifest keeps included. A release with 100,000 declared maps takes a fifth of it.
 */
export const UPLOADS_MAX_BYTES = 256 * MIB
/** Memory of Redis that the records of completions of one workspace may take, in bytes: about 28,000 completions in a day. */
export const COMPLETIONS_MAX_BYTES = 16 * MIB

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
