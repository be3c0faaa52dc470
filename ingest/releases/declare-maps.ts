import type { Redis } from 'ioredis'
import { GIB } from '../../schemas/units.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { budgetMember, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { type DeclaredMap, stagedKeys, stagedMember, uploadKeys } from '../../shared/queue/upload-keys.ts'

/** The most paths that may be declared for one release until its completion. */
export const MAX_DECLARED_PATHS = 100_000

/** The most bytes of maps that a workspace may have declared to upload and not completed. */
export const MAX_STAGED_BYTES = 8 * GIB

/** The outcome of declaring maps. Nothing is stored unless it is `declared`. */
export type Declared = 'declared' | 'too_many_paths' | 'too_many_bytes' | 'over_budget'

const DECLARE = queueScript('uploads/declare-maps')

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
  const args = [limits.paths, limits.stagedBytes, budgetMember(release), ...declared]
  return (await DECLARE.run(redis, keys, args)) as Declared
}
