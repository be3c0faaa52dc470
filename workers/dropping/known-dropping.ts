import type { Dropping } from '../../schemas/records/dropping.ts'
import type { DroppingStore } from '../../shared/directory/dropping-store.ts'
import { readRules } from '../sink/read-rules.ts'
import type { KnownRules } from '../sink/workspace-rules.ts'
import { Dropper } from './dropper.ts'

/** Memory of a dropper besides its rules. */
const DROPPER_BYTES = 12_000
const NO_RULES = new Dropper({ revision: 0, rules: [] })

/** The droppers of workspaces. */
export type KnownDropping = KnownRules<Dropper>

/** Creates the droppers of a process. */
export function createKnownDropping(
  store: Pick<DroppingStore, 'dropping' | 'droppingAt'>,
  now: () => number = Date.now,
): KnownDropping {
  const source = {
    name: 'dropping',
    current: (workspaceId: string) => store.dropping(workspaceId),
    at: (workspaceId: string, revision: number) => store.droppingAt(workspaceId, revision),
    compile: (record: Dropping) => new Dropper(record),
    none: NO_RULES,
    compiledBytes: DROPPER_BYTES,
  }
  return readRules(source, now)
}
