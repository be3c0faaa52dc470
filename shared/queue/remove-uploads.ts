import type { Redis } from 'ioredis'
import type { ReleaseKey } from '../ids/release-key.ts'
import { TransientError } from '../runtime/errors.ts'
import { queueScript } from './queue-script.ts'
import { budgetMember, uploadBudgetKeys } from './upload-budget.ts'
import { uploadKeys } from './upload-keys.ts'

/** Paths or records that one script removes, so that Redis serves others in between. */
const PAGE = 500
/** Scripts of one removal. The budget of a workspace has room for less than half as many pages. */
const MAX_PAGES = 2_000

const REMOVE_MAPS = queueScript('uploads/remove-maps')
const REMOVE_COMPLETIONS = queueScript('uploads/remove-completions')

/**
 * Removes the declared maps, claims and completions of a release from the Redis of the queues, those that a manifest keeps
 * included, and takes them off the budget of the workspace. It may be repeated.
 */
export async function removeUploads(redis: Redis, release: ReleaseKey): Promise<void> {
  const keys = uploadKeys(release)
  const member = budgetMember(release)
  const { completions, ...maps } = uploadBudgetKeys(release.workspaceId)
  await untilRemoved(async () => {
    const pages = await Promise.all([redis.srandmember(keys.claimed, PAGE), redis.srandmember(keys.sealed, PAGE)])
    const paths = pages.flat()
    const fixed = [keys.claimed, keys.sealed, keys.signed, keys.singles, maps.sums, maps.ends, maps.sealed]
    const names = [...fixed, ...paths.map(keys.partsOf)]
    return REMOVE_MAPS.run(redis, names, [member, ...paths])
  })
  await untilRemoved(async () => {
    const digests = await redis.zrange(keys.recorded, 0, String(PAGE - 1))
    const names = [keys.recorded, keys.sequence, completions.sums, completions.ends, ...digests.map(keys.completion)]
    return REMOVE_COMPLETIONS.run(redis, names, [member, ...digests])
  })
}

/**
 * Returns whether a build uploads maps for a release, or has within the last day: there are declared maps, maps or parts that
 * no manifest contains, or completions.
 */
export async function hasUploads(redis: Redis, release: ReleaseKey): Promise<boolean> {
  const { signed, singles, claimed, recorded } = uploadKeys(release)
  const [maps, completions] = await Promise.all([redis.exists(signed, singles, claimed), redis.exists(recorded)])
  return maps + completions > 0
}

async function untilRemoved(removePage: () => Promise<unknown>): Promise<void> {
  for (let page = 0; page < MAX_PAGES; page++) {
    if ((await removePage()) === 1) return
  }
  throw new TransientError('the uploads of a release arrive faster than they can be removed')
}
