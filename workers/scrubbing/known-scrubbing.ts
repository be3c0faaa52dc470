import type { Scrubbing } from '../../schemas/records/scrubbing.ts'
import type { ScrubbingStore } from '../../shared/directory/scrubbing-store.ts'
import { DEFAULT_SCRUBBER, Scrubber } from '../../shared/scrubbing/scrubber.ts'
import { readRules } from '../sink/read-rules.ts'
import type { KnownRules } from '../sink/workspace-rules.ts'

/** Memory of a scrubber besides its rules: tables of endings, and keys that it has seen. */
const SCRUBBER_BYTES = 600_000

/** The scrubbers of workspaces. */
export type KnownScrubbing = KnownRules<Scrubber>

/** Creates the scrubbers of a process. */
export function createKnownScrubbing(
  store: Pick<ScrubbingStore, 'scrubbing' | 'scrubbingAt' | 'scrubbingKey'>,
  now: () => number = Date.now,
): KnownScrubbing {
  const source = {
    name: 'scrubbing',
    current: (workspaceId: string) => store.scrubbing(workspaceId),
    at: (workspaceId: string, revision: number) => store.scrubbingAt(workspaceId, revision),
    async compile({ workspaceId, revision, rules }: Scrubbing) {
      const hashes = rules.some(({ action }) => action === 'hash')
      return new Scrubber({ revision, rules, hashKey: hashes ? await store.scrubbingKey(workspaceId) : undefined })
    },
    none: DEFAULT_SCRUBBER,
    compiledBytes: SCRUBBER_BYTES,
  }
  return readRules(source, now)
}
