import { LRUCache } from 'lru-cache'
import type { Scrubbing } from '../../schemas/records/scrubbing.ts'
import { MIB, SECOND_MS } from '../../schemas/units.ts'
import type { ScrubbingStore } from '../../shared/directory/scrubbing-store.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import { DEFAULT_SCRUBBER, Scrubber } from '../../shared/scrubbing/scrubber.ts'

/** A change of rules applies to new data after this time. */
const LIFETIME_MS = 5 * SECOND_MS

/** The scrubbers of workspaces. */
export interface KnownScrubbing {
  /**
   * Returns the scrubber of a workspace, at most five seconds old, or that of this revision. The latest one if it has been replaced
   * too often since. While the directory does not respond, the last one that is known. Throws TransientErrors.
   */
  of(workspaceId: string, revision?: number): Promise<Scrubber>
}

/** Creates the scrubbers of a process. It reads the rules of a workspace every five seconds, and holds a bounded number of them. */
export function createKnownScrubbing(
  store: Pick<ScrubbingStore, 'scrubbing' | 'scrubbingAt' | 'scrubbingKey'>,
  now: () => number = Date.now,
): KnownScrubbing {
  const cache = new LRUCache<string, { readonly scrubber: Scrubber; readonly readAt: number }>({ maxSize: 16 * MIB })

  async function compile(record: Scrubbing | undefined): Promise<Scrubber> {
    if (record === undefined) return DEFAULT_SCRUBBER
    const { workspaceId, revision, rules } = record
    const hashes = rules.some(({ action }) => action === 'hash')
    return new Scrubber({ revision, rules, hashKey: hashes ? await store.scrubbingKey(workspaceId) : undefined })
  }

  async function latest(workspaceId: string): Promise<Scrubber> {
    const known = cache.get(workspaceId)
    if (known !== undefined && now() - known.readAt < LIFETIME_MS) return known.scrubber
    try {
      const record = await store.scrubbing(workspaceId)
      // Equal rules are the same scrubber, which remembers what it has found.
      const isSame = known !== undefined && known.scrubber.revision === (record?.revision ?? 0)
      const scrubber = isSame ? known.scrubber : await compile(record)
      const size = record === undefined ? 200 : 10_000 + 20 * JSON.stringify(record.rules).length
      cache.set(workspaceId, { scrubber, readAt: now() }, { size })
      return scrubber
    } catch (error) {
      if (known === undefined) throw unavailable(error)
      cache.set(workspaceId, { ...known, readAt: now() }, { size: 10_000 })
      return known.scrubber
    }
  }

  return {
    async of(workspaceId, revision) {
      if (revision === 0) return DEFAULT_SCRUBBER
      const scrubber = await latest(workspaceId)
      if (revision === undefined || revision === scrubber.revision) return scrubber
      try {
        const earlier = await store.scrubbingAt(workspaceId, revision)
        return earlier === undefined ? scrubber : await compile(earlier)
      } catch (error) {
        throw unavailable(error)
      }
    },
  }
}

function unavailable(error: unknown): TransientError {
  return new TransientError(`the rules of scrubbing are unavailable: ${describeError(error)}`, { cause: error })
}
