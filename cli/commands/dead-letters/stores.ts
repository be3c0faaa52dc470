import type { PurgeLettersDeps } from '../../../letters/purge-letters.ts'
import type { ReplayLettersDeps } from '../../../letters/replay-letters.ts'
import type { Workspace } from '../../../schemas/records/directory.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'

/** Stores of dead letters. */
export interface LetterStores extends ReplayLettersDeps, PurgeLettersDeps {
  readonly objects: ObjectStore
}

/** Runs a command with the stores, on one workspace. If the workspace does not exist, only the error is printed. */
export type WithLetters = (
  slugOrId: string,
  run: (stores: LetterStores, workspace: Workspace) => Promise<void>,
) => Promise<void>

/** How long one step may take. */
export const STEP_TIMEOUT_MS = 120_000
