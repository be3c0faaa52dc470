import type { ClickHouseClient } from '../clickhouse/client.ts'
import { deleteLetterRows } from '../clickhouse/queries/letters/delete-letter-rows.ts'
import type { Letter, LetterKey } from '../clickhouse/queries/letters/letter.ts'
import { selectObjectLetters } from '../clickhouse/queries/letters/select-object-letters.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
import { blankLetters, LETTER_CONTENT_TYPE } from '../shared/queue/letters/letter-object.ts'
import { TransientError } from '../shared/runtime/errors.ts'
import type { LetterClaims } from './letter-claims.ts'
import type { SkippedLetter } from './replay-letters.ts'
import { type Selection, type Step, selectPage } from './select-page.ts'

/** Dependencies of purging. */
export interface PurgeLettersDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'get' | 'put' | 'deleteMany'>
  readonly claims: LetterClaims
  readonly now: () => number
}

/** The result of one step of a purge. */
export interface PurgeStep {
  /** Number of letters whose rows and bytes are gone. */
  readonly purged: number
  /** Letters that are being replayed, and those that were not found. */
  readonly skipped: readonly SkippedLetter[]
  /** Where the next step begins; undefined if the selection is done. */
  readonly next: { readonly after: LetterKey | undefined } | undefined
}

/** An object has the letters of one payload, which is 8 MiB or one letter of at most a body and its attributes. */
const MAX_OBJECT_BYTES = 64 * 1024 * 1024
/** How often an object is written again because others purge letters of it at the same time. */
const MAX_ROUNDS = 20

/**
 * Deletes the next letters of a selection: first they are claimed, so that none is replayed, then their bytes go, and last
 * their rows. A call that ends in between is repeated from its beginning, and finds the rows. Any number of calls may run at
 * once.
 */
export async function purgeLetters(
  deps: PurgeLettersDeps,
  workspaceId: string,
  selection: Selection,
  step: Step,
  signal: AbortSignal,
): Promise<PurgeStep> {
  const { clickhouse, claims, now } = deps
  const { letters, unknown, next } = await selectPage(clickhouse, workspaceId, selection, step, signal)
  const skipped: SkippedLetter[] = unknown.map(key => ({ key, reason: 'not_found' }))
  const taken = new Set(await claims.purge(workspaceId, letters, now()))
  for (const at of taken) skipped.push({ key: letters[at] as Letter, reason: 'replaying' })
  const purged = letters.filter((_, i) => !taken.has(i))
  await purgeBytes(deps, workspaceId, purged, signal)
  await deleteLetterRows(clickhouse, workspaceId, purged, signal)
  return { purged: purged.length, skipped, next }
}

/**
 * Deletes the objects that have no other letters, and overwrites the purged letters in the others. Repeated until nothing
 * was purged meanwhile: two purges of one object would otherwise restore the bytes that the other has overwritten.
 */
async function purgeBytes(
  deps: PurgeLettersDeps,
  workspaceId: string,
  letters: readonly Letter[],
  signal: AbortSignal,
): Promise<void> {
  const stored = letters.filter(({ objectKey }) => objectKey !== '')
  if (stored.length === 0) return
  const times = stored.map(({ receivedAtMs }) => receivedAtMs)
  const range = { fromMs: Math.min(...times), toMs: Math.max(...times) }
  let pending = new Set(stored.map(({ objectKey }) => objectKey))
  let kept = await keptLetters(deps, workspaceId, [...pending], range, signal)
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const objectKeys = [...pending]
    await deps.objects.deleteMany(objectKeys.filter(key => !kept.has(key)))
    for (const key of objectKeys) {
      signal.throwIfAborted()
      const others = kept.get(key)
      if (others) await keepOnly(deps, key, others)
    }
    const keptNow = await keptLetters(deps, workspaceId, objectKeys, range, signal)
    pending = new Set(objectKeys.filter(key => (keptNow.get(key) ?? []).length !== (kept.get(key) ?? []).length))
    if (pending.size === 0) return
    kept = keptNow
  }
  throw new TransientError('others purge letters of the same objects: purge again')
}

/** Returns the letters that stay, by object. */
async function keptLetters(
  { clickhouse, claims }: PurgeLettersDeps,
  workspaceId: string,
  objectKeys: readonly string[],
  range: { readonly fromMs: number; readonly toMs: number },
  signal: AbortSignal,
): Promise<Map<string, Letter[]>> {
  const letters = await selectObjectLetters(clickhouse, { workspaceId, objectKeys, ...range }, signal)
  const states = await claims.states(workspaceId, letters)
  const kept = new Map<string, Letter[]>()
  for (const [i, letter] of letters.entries()) {
    if (states[i]?.isPurged) continue
    const others = kept.get(letter.objectKey) ?? []
    kept.set(letter.objectKey, others)
    others.push(letter)
  }
  return kept
}

/** Writes an object again with the bytes of these letters alone. All letters keep their ranges. */
async function keepOnly({ objects }: PurgeLettersDeps, key: string, letters: readonly Letter[]): Promise<void> {
  const object = await objects.get(key, MAX_OBJECT_BYTES)
  if (object === undefined) return
  const { body, metadata } = object
  if (!blankLetters(body, new Set(letters.map(({ offset }) => offset)))) return
  await objects.put(key, body, { contentType: LETTER_CONTENT_TYPE, metadata })
}
