import { LRUCache } from 'lru-cache'
import type { Scrubbing } from '../../schemas/records/scrubbing.ts'
import { MIB, SECOND_MS } from '../../schemas/units.ts'
import type { ScrubbingStore } from '../../shared/directory/scrubbing-store.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import { DEFAULT_SCRUBBER, Scrubber } from '../../shared/scrubbing/scrubber.ts'

/** A change of rules applies to new data after this time. */
const LIFETIME_MS = 5 * SECOND_MS
/** Time that a batch waits for the directory. */
const READ_TIMEOUT_MS = 2 * SECOND_MS
/** Memory of a scrubber besides its rules: tables of endings, and keys that it has seen. */
const SCRUBBER_BYTES = 600_000

/** The scrubbers of workspaces. */
export interface KnownScrubbing {
  /**
   * Returns the scrubber of a workspace, at most five seconds old, or that of this revision. The latest one if it has been replaced
   * too often since. While the directory does not respond, the last one that is known. Throws TransientErrors.
   */
  of(workspaceId: string, revision?: number): Promise<Scrubber>
}

/** The scrubber of a workspace as it was read. */
interface ReadScrubber {
  readonly scrubber: Scrubber
  readonly readAt: number
  readonly size: number
}

/** Creates the scrubbers of a process. It reads the rules of a workspace every five seconds, and holds a bounded number of them. */
export function createKnownScrubbing(
  store: Pick<ScrubbingStore, 'scrubbing' | 'scrubbingAt' | 'scrubbingKey'>,
  now: () => number = Date.now,
): KnownScrubbing {
  const cache = new LRUCache<string, ReadScrubber>({ maxSize: 64 * MIB })
  /** Until when the directory is not asked, because it has not responded. */
  let isDownUntil = 0

  async function compile(record: Scrubbing | undefined): Promise<Scrubber> {
    if (record === undefined) return DEFAULT_SCRUBBER
    const { workspaceId, revision, rules } = record
    const hashes = rules.some(({ action }) => action === 'hash')
    return new Scrubber({ revision, rules, hashKey: hashes ? await store.scrubbingKey(workspaceId) : undefined })
  }

  /** Reads from the directory, whose commands wait without limit while it is unavailable. */
  async function read<T>(reading: () => Promise<T>): Promise<T> {
    if (now() < isDownUntil) throw unavailable('it has not responded')
    try {
      return await withDeadline(reading(), READ_TIMEOUT_MS, `it has not responded within ${READ_TIMEOUT_MS} ms`)
    } catch (error) {
      isDownUntil = now() + LIFETIME_MS
      throw unavailable(error)
    }
  }

  async function latest(workspaceId: string): Promise<Scrubber> {
    const known = cache.get(workspaceId)
    if (known !== undefined && now() - known.readAt < LIFETIME_MS) return known.scrubber
    try {
      const record = await read(() => store.scrubbing(workspaceId))
      // Equal rules are the same scrubber, which remembers what it has found.
      const isSame = known !== undefined && known.scrubber.revision === (record?.revision ?? 0)
      const scrubber = isSame ? known.scrubber : await read(() => compile(record))
      const size = record === undefined ? 200 : SCRUBBER_BYTES + 20 * JSON.stringify(record.rules).length
      cache.set(workspaceId, { scrubber, readAt: now(), size }, { size })
      return scrubber
    } catch (error) {
      if (known === undefined) throw error
      return known.scrubber
    }
  }

  return {
    async of(workspaceId, revision) {
      if (revision === 0) return DEFAULT_SCRUBBER
      const scrubber = await latest(workspaceId)
      if (revision === undefined || revision === scrubber.revision) return scrubber
      const earlier = await read(() => store.scrubbingAt(workspaceId, revision))
      return earlier === undefined ? scrubber : read(() => compile(earlier))
    },
  }
}

function unavailable(cause: unknown): TransientError {
  if (cause instanceof TransientError) return cause
  return new TransientError(`the rules of scrubbing are unavailable: ${describeError(cause)}`, { cause })
}
