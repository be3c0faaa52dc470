import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { Letter, LetterFilter, LetterKey } from '../clickhouse/queries/letters/letter.ts'
import { selectLetters, selectLettersByKey } from '../clickhouse/queries/letters/select-letters.ts'

/** Dead letters of a workspace that are replayed or purged: some by their keys, or all that a filter matches. */
export type Selection = { readonly keys: readonly LetterKey[] } | { readonly filter: LetterFilter }

/** Where the work on a selection continues, and how much is done in one step. */
export interface Step {
  /** The last letter of the step before. */
  readonly after?: LetterKey | undefined
  readonly limit: number
}

/** Letters of one step, and where the next one begins. */
interface SelectedPage {
  readonly letters: readonly Letter[]
  /** Keys of the selection without a letter: it has expired or was purged, or never was in the workspace. */
  readonly unknown: readonly LetterKey[]
  /** Where the next step begins, after the last letter or unknown key of this one; undefined if nothing follows. */
  readonly next: { readonly after: LetterKey | undefined } | undefined
}

/** Selects the letters of the next step, oldest first. */
export async function selectPage(
  clickhouse: ClickHouseClient,
  workspaceId: string,
  selection: Selection,
  { after, limit }: Step,
  signal: AbortSignal,
): Promise<SelectedPage> {
  if ('filter' in selection) {
    const page = { workspaceId, filter: selection.filter, order: 'oldest', after, limit: limit + 1 } as const
    const found = await selectLetters(clickhouse, page, signal)
    const letters = found.slice(0, limit)
    return { letters, unknown: [], next: found.length > limit ? { after: letters.at(-1) } : undefined }
  }
  const ahead = selection.keys.filter(key => after === undefined || compareKeys(key, after) > 0).toSorted(compareKeys)
  const keys = ahead.slice(0, limit)
  const letters = await selectLettersByKey(clickhouse, workspaceId, keys, signal)
  const unknown = keys.filter(key => !letters.some(letter => compareKeys(letter, key) === 0))
  return { letters, unknown, next: ahead.length > limit ? { after: keys.at(-1) } : undefined }
}

/** Compares the keys of letters in the order of their arrival. */
export function compareKeys(a: LetterKey, b: LetterKey): number {
  if (a.receivedAtMs !== b.receivedAtMs) return a.receivedAtMs - b.receivedAtMs
  return Buffer.compare(Buffer.from(a.jobId), Buffer.from(b.jobId)) || a.index - b.index
}
