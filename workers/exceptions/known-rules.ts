import { LRUCache } from 'lru-cache'
import { MIB, SECOND_MS } from '../../schemas/units.ts'
import type { FindingRulesStore } from '../../shared/directory/findings/finding-rules-store.ts'
import { type CompiledRules, compileRules, NO_RULES } from '../../shared/grouping/rules.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'

/** A change of rules applies to new exceptions after this time. */
const LIFETIME_MS = 5 * SECOND_MS

/** The rules of workspaces. */
export interface KnownRules {
  /**
   * Returns the rules of a workspace, at most five seconds old, or those with this revision. The latest ones if it has been
   * replaced too often since. Throws TransientErrors.
   */
  of(workspaceId: string, revision?: number): Promise<CompiledRules>
  /**
   * Runs after rows were stored by these revisions, by workspace. Rows by rules that have been replaced are grouped again: the
   * upkeep may have looked for them before they were there. Throws TransientErrors.
   */
  stored(revisions: ReadonlyMap<string, number>): Promise<void>
}

/** Creates the rules of a process. It reads those of a workspace every five seconds, and holds a bounded number in memory. */
export function createKnownRules(
  store: Pick<FindingRulesStore, 'findingRules' | 'findingRulesAt' | 'findingRevisions' | 'groupAgain'>,
  now: () => number = Date.now,
): KnownRules {
  const cache = new LRUCache<string, CompiledRules>({
    maxSize: 16 * MIB,
    ttl: LIFETIME_MS,
    ttlResolution: 0,
    perf: { now },
  })

  async function latest(workspaceId: string): Promise<CompiledRules> {
    const known = cache.get(workspaceId)
    if (known !== undefined) return known
    const record = await transient(store.findingRules(workspaceId))
    const rules = record === undefined ? NO_RULES : compileRules(record)
    cache.set(workspaceId, rules, { size: 200 + 4 * JSON.stringify(rules.rules).length })
    return rules
  }

  return {
    async of(workspaceId, revision) {
      if (revision === 0) return NO_RULES
      const rules = await latest(workspaceId)
      if (revision === undefined || revision === rules.revision) return rules
      const earlier = await transient(store.findingRulesAt(workspaceId, revision))
      return earlier === undefined ? rules : compileRules(earlier)
    },
    async stored(revisions) {
      const workspaceIds = [...revisions.keys()]
      const current = await transient(store.findingRevisions(workspaceIds))
      await transient(store.groupAgain(workspaceIds.filter((id, i) => current[i] !== revisions.get(id))))
    },
  }
}

async function transient<T>(result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (error) {
    throw new TransientError(`the rules are unavailable: ${describeError(error)}`, { cause: error })
  }
}
