import { LRUCache } from 'lru-cache'
import { MIB, SECOND_MS } from '../../schemas/units.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import type { KnownRules } from './workspace-rules.ts'

/** A change of rules applies to new data after this time. */
const LIFETIME_MS = 5 * SECOND_MS
/** Time that a batch waits for the directory. */
const READ_TIMEOUT_MS = 2 * SECOND_MS
/** Memory for the rules of a kind. */
const RULES_BYTES = 64 * MIB

/** A record of rules in the directory. */
interface RulesRecord {
  readonly workspaceId: string
  readonly revision: number
  readonly rules: readonly unknown[]
}

/** A kind of rules, and how they are used. */
interface RulesSource<R, T> {
  /** Names the rules in errors, as in "the rules of scrubbing". */
  readonly name: string
  readonly current: (workspaceId: string) => Promise<R | undefined>
  readonly at: (workspaceId: string, revision: number) => Promise<R | undefined>
  readonly compile: (record: R) => T | Promise<T>
  /** What a workspace without a record has. Its revision is 0. */
  readonly none: T
  /** Memory that a compiled record takes besides its rules. */
  readonly compiledBytes: number
}

/** Rules as they were read. */
interface ReadRules<T> {
  readonly compiled: T
  readonly readAt: number
  readonly size: number
}

/**
 * Returns the rules of a kind. A process reads those of a workspace every five seconds, and holds a bounded number of them. While
 * the directory does not respond, the last ones that are known count. The latest ones take the place of a revision that has been
 * replaced too often since.
 */
export function readRules<R extends RulesRecord, T extends { readonly revision: number }>(
  { name, none, compiledBytes, ...source }: RulesSource<R, T>,
  now: () => number,
): KnownRules<T> {
  const cache = new LRUCache<string, ReadRules<T>>({ maxSize: RULES_BYTES })
  /** Until when the directory is not asked, because it has not responded. */
  let isDownUntil = 0

  const unavailable = (cause: unknown) =>
    cause instanceof TransientError
      ? cause
      : new TransientError(`the rules of ${name} are unavailable: ${describeError(cause)}`, { cause })

  /** Reads from the directory, whose commands wait without limit while it is unavailable. */
  async function read<V>(reading: () => Promise<V>): Promise<V> {
    if (now() < isDownUntil) throw unavailable('it has not responded')
    try {
      return await withDeadline(reading(), READ_TIMEOUT_MS, `it has not responded within ${READ_TIMEOUT_MS} ms`)
    } catch (error) {
      isDownUntil = now() + LIFETIME_MS
      throw unavailable(error)
    }
  }

  const compile = async (record: R | undefined) => (record === undefined ? none : source.compile(record))

  async function latest(workspaceId: string): Promise<T> {
    const known = cache.get(workspaceId)
    if (known !== undefined && now() - known.readAt < LIFETIME_MS) return known.compiled
    try {
      const record = await read(() => source.current(workspaceId))
      // Rules of the same revision stay compiled, with what they remember.
      const isSame = known !== undefined && known.compiled.revision === (record?.revision ?? 0)
      const compiled = isSame ? known.compiled : await read(() => compile(record))
      const size = record === undefined ? 200 : compiledBytes + 20 * JSON.stringify(record.rules).length
      cache.set(workspaceId, { compiled, readAt: now(), size }, { size })
      return compiled
    } catch (error) {
      if (known === undefined) throw error
      return known.compiled
    }
  }

  return {
    async of(workspaceId, revision) {
      if (revision === 0) return none
      const rules = await latest(workspaceId)
      if (revision === undefined || revision === rules.revision) return rules
      const earlier = await read(() => source.at(workspaceId, revision))
      return earlier === undefined ? rules : read(() => compile(earlier))
    },
  }
}
