import { selectSessionLetters } from '../../clickhouse/queries/sessions/select-erased.ts'
import { type PurgeLettersDeps, purgeLetters } from '../../letters/purge-letters.ts'

const LETTERS_PAGE = 500

/** Result of erasing dead letters. */
interface ErasedLetters {
  readonly purged: number
  /** Letters that wait in a queue, because they are being replayed. */
  readonly replaying: number
}

/** Erases the dead letters whose request names one of these sessions, with their bytes. */
export async function eraseLetters(
  deps: PurgeLettersDeps,
  key: { readonly workspaceId: string; readonly sessionIds: readonly string[] },
  signal: AbortSignal,
): Promise<ErasedLetters> {
  let [purged, replaying] = [0, 0]
  for (;;) {
    const page = { limit: LETTERS_PAGE, offset: replaying }
    const keys = await selectSessionLetters(deps.clickhouse, key, page, signal)
    if (keys.length === 0) return { purged, replaying }
    const step = await purgeLetters(deps, key.workspaceId, { keys }, { limit: LETTERS_PAGE }, signal)
    purged += step.purged
    replaying += step.skipped.filter(({ reason }) => reason === 'replaying').length
  }
}
