import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Letter } from '../../clickhouse/queries/letters/letter.ts'
import { selectAttempts } from '../../clickhouse/queries/letters/select-letters.ts'
import type { ClaimState, LetterClaims } from '../../letters/letter-claims.ts'
import { readLetterId } from '../../letters/letter-id.ts'
import { queryDirectory } from '../http/query-directory.ts'

/** Dependencies of loading a letter. */
export interface LoadLetterDeps {
  readonly clickhouse: ClickHouseClient
  readonly letterClaims: Pick<LetterClaims, 'states'>
}

/** A letter with all its attempts. */
export interface LoadedLetter {
  /** As of its last attempt. */
  readonly letter: Letter
  readonly attempts: readonly Letter[]
  readonly claim: ClaimState | undefined
}

/** Loads a letter of a workspace. Returns undefined if there is none, or if it is being purged. */
export async function loadLetter(
  { clickhouse, letterClaims }: LoadLetterDeps,
  workspaceId: string,
  id: string,
  signal: AbortSignal,
): Promise<LoadedLetter | undefined> {
  const key = readLetterId(id)
  if (key === undefined) return undefined
  const attempts = await selectAttempts(clickhouse, workspaceId, [key], signal)
  const letter = attempts.at(-1)
  if (letter === undefined) return undefined
  const [claim] = await queryDirectory(letterClaims.states(workspaceId, [letter]))
  return claim?.isPurged ? undefined : { letter, attempts, claim }
}
