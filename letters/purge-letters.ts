import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { Letter, LetterKey } from '../clickhouse/queries/letters/letter.ts'
import { HAS_KEY, keyParams } from '../clickhouse/queries/letters/letter.ts'
import { deleteCountedRows } from '../clickhouse/queries/retention/delete-counted-rows.ts'
import { deadLetterSchema } from '../schemas/queues/dead-letters.ts'
import { MIB } from '../schemas/units.ts'
import { forEachConcurrently } from '../shared/concurrency/for-each.ts'
import { parseJson } from '../shared/json/parse-json.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
import {
  blankLetter,
  isBlank,
  LETTER_CONTENT_TYPE,
  letterCount,
  type PlacedLetter,
  placeLetters,
} from '../shared/queue/letters/letter-object.ts'
import { TransientError } from '../shared/runtime/errors.ts'
import type { LetterClaims } from './letter-claims.ts'
import type { SkippedLetter } from './replay-letters.ts'
import { type Selection, type Step, selectPage } from './select-page.ts'

/** Dependencies of purging. */
export interface PurgeLettersDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'head' | 'get' | 'put' | 'deleteMany'>
  readonly claims: LetterClaims
  readonly now: () => number
}

/** The result of one step of a purge. */
interface PurgeStep {
  /** Number of letters whose rows and bytes are gone. */
  readonly purged: number
  /** Letters that are being replayed, and those that were not found. */
  readonly skipped: readonly SkippedLetter[]
  /** Where the next step begins; undefined if the selection is done. */
  readonly next: { readonly after: LetterKey | undefined } | undefined
}

/** An object has the letters of one payload, which is 8 MiB or one letter of at most a body and its attributes. */
const MAX_OBJECT_BYTES = 64 * MIB
/** Objects whose properties are read at the same time: each letter of a step may be in an object of its own. */
const HEAD_CONCURRENCY = 16
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
  await deleteRows(clickhouse, workspaceId, purged, signal)
  return { purged: purged.length, skipped, next }
}

async function deleteRows(
  clickhouse: PurgeLettersDeps['clickhouse'],
  workspaceId: string,
  letters: readonly Letter[],
  signal: AbortSignal,
): Promise<void> {
  if (letters.length === 0) return
  const params = keyParams(workspaceId, letters)
  const rows = { table: 'dead_letters', where: HAS_KEY, params, isSource: true } as const
  await deleteCountedRows(clickhouse, { ...rows, reason: 'purged', id: JSON.stringify(params) }, signal)
}

/**
 * Overwrites the bytes of the letters, and deletes the objects of which no other letter is left. The others keep their
 * bytes, also if they have no row yet: the rows of one object can arrive apart.
 */
async function purgeBytes(
  deps: PurgeLettersDeps,
  workspaceId: string,
  letters: readonly Letter[],
  signal: AbortSignal,
): Promise<void> {
  const byObject = new Map<string, Set<number>>()
  for (const { objectKey, offset } of letters) {
    if (objectKey === '') continue
    const offsets = byObject.get(objectKey) ?? new Set()
    byObject.set(objectKey, offsets.add(offset))
  }
  const whole: string[] = []
  const shared: [string, ReadonlySet<number>][] = []
  const reads = { concurrency: HEAD_CONCURRENCY, stopOnFailure: true }
  await forEachConcurrently([...byObject], reads, async ([key, offsets]) => {
    signal.throwIfAborted()
    const object = await deps.objects.head(key)
    if (object === undefined) return
    if (letterCount(object.metadata) === offsets.size) whole.push(key)
    else shared.push([key, offsets])
  })
  await deps.objects.deleteMany(whole)
  for (const [key, offsets] of shared) await blankIn(deps, workspaceId, key, offsets, signal)
}

/**
 * Overwrites the letters at these offsets in an object, and every other one that is claimed by a purge. Two purges of one
 * object would otherwise restore the bytes that the other has overwritten. So it is repeated until no letter was claimed
 * while the object was written. The letters in the object name their claims, which outlive their rows.
 */
async function blankIn(
  { objects, claims }: PurgeLettersDeps,
  workspaceId: string,
  key: string,
  offsets: ReadonlySet<number>,
  signal: AbortSignal,
): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    signal.throwIfAborted()
    const object = await objects.get(key, MAX_OBJECT_BYTES)
    if (object === undefined) return
    const { body, metadata } = object
    const open = placeLetters(body).filter(({ frame }) => !isBlank(frame))
    const claimed = () => claimedOffsets(claims, workspaceId, open)
    const purged = new Set([...offsets, ...(await claimed())])
    const found = open.filter(({ offset }) => purged.has(offset))
    if (found.length === open.length) return objects.deleteMany([key])
    if (found.length === 0) return
    for (const letter of found) blankLetter(body, letter)
    await objects.put(key, body, { contentType: LETTER_CONTENT_TYPE, metadata })
    if ((await claimed()).every(offset => purged.has(offset))) return
  }
  throw new TransientError('others purge letters of the same objects: purge again')
}

/** Returns where the letters begin that are claimed by a purge. */
async function claimedOffsets(
  claims: LetterClaims,
  workspaceId: string,
  letters: readonly PlacedLetter[],
): Promise<number[]> {
  const named = letters.flatMap(({ offset, frame: { attributes, receivedAtMs } }) => {
    const letter = deadLetterSchema.safeParse(parseJson(attributes)).data
    return letter ? [{ queue: letter.queue, jobId: letter.jobId, index: letter.index, receivedAtMs, offset }] : []
  })
  const states = await claims.states(workspaceId, named)
  return named.filter((_, i) => states[i]?.isPurged).map(({ offset }) => offset)
}
