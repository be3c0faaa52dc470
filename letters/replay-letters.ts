import { randomUUID } from 'node:crypto'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { Letter, LetterKey } from '../clickhouse/queries/letters/letter.ts'
import { EXPORT_DECOMPRESSED_BYTES } from '../schemas/http/limits.ts'
import type { QueueName } from '../schemas/queues/names.ts'
import { KIB, MIB } from '../schemas/units.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
import { withReplay } from '../shared/queue/letters/replayed-letter.ts'
import { encodePayload, frameBytes, type PayloadFrame } from '../shared/queue/payload-frame.ts'
import { newJobId, shareMember } from '../shared/queue/queue.ts'
import { estimatedWork, statedDecodedBytes } from '../shared/queue/request-work.ts'
import type { ClaimState, LetterClaims } from './letter-claims.ts'
import { type LetterContent, readLetters } from './read-letters.ts'
import type { ReplayJobs } from './replay-jobs.ts'
import { type Selection, type Step, selectPage } from './select-page.ts'

/** Bounds of one payload, which are those of a group commit of the edge: frames, bytes and estimated work. */
const MAX_FRAMES = 512
const MAX_PAYLOAD_BYTES = 4 * MIB
const MAX_COST = 8 * MIB
/** The least cost of a request, so that the number of requests in progress has a bound. */
const MIN_REQUEST_COST = 8 * KIB
/** Bytes of letters that one step has in memory, unless one letter is larger. */
const MAX_STEP_BYTES = 24 * MIB

/**
 * Queues whose letters are not replayed. The work of `symbolication` is requested again by itself. A part of a map has lost
 * its claim, and a completion its record: a completion names the maps that are missing, and its client sends them again.
 * The other two contain letters themselves.
 */
const NOT_REPLAYED: ReadonlySet<QueueName> = new Set([
  'symbolication',
  'source-maps',
  'completions',
  'dead-letters',
  'dead-letter-index',
])

/** Dependencies of replaying. */
export interface ReplayLettersDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'getStream'>
  readonly claims: LetterClaims
  readonly jobs: Pick<ReplayJobs, 'add'>
  readonly now: () => number
}

/**
 * Why a letter is not replayed (docs/api/dead-letters.md#replay-letters).
 *
 * - replaying: it waits for a worker
 * - replayed: it is stored
 * - purged: it is being deleted
 * - not_found: there is no such letter
 * - bytes_missing: the object store has not got its bytes
 * - not_replayable: nothing would be stored, or it is unknown which records are stored already
 */
export type SkipReason = 'replaying' | 'replayed' | 'purged' | 'not_found' | 'bytes_missing' | 'not_replayable'

/** A letter that a step has not changed, and why. */
export interface SkippedLetter {
  readonly key: LetterKey
  readonly reason: SkipReason
}

/** The result of one step of a replay. */
export interface ReplayStep {
  /** Number of letters that are back in their queues. */
  readonly replayed: number
  readonly skipped: readonly SkippedLetter[]
  /** Where the next step begins; undefined if the selection is done. */
  readonly next: { readonly after: LetterKey | undefined } | undefined
  /** The queues had no room for some of the letters. */
  readonly isBusy: boolean
}

/**
 * Puts the next letters of a selection back into the queues that refused them, with the bytes, ids, arrival and receipt of
 * the request. Any number of calls may run at once, and end at any point: a letter is claimed in the step that accepts its
 * payload.
 */
export async function replayLetters(
  deps: ReplayLettersDeps,
  workspaceId: string,
  selection: Selection,
  step: Step,
  signal: AbortSignal,
): Promise<ReplayStep> {
  const { clickhouse, objects, claims } = deps
  const { letters, unknown, next } = await selectPage(clickhouse, workspaceId, withDead(selection), step, signal)
  const skipped: SkippedLetter[] = unknown.map(key => ({ key, reason: 'not_found' }))
  const states = await claims.states(workspaceId, letters)
  const open = letters.filter((letter, i) => {
    const reason = reasonToSkip(letter, states[i])
    if (reason !== undefined) skipped.push({ key: letter, reason })
    return reason === undefined
  })
  const within = withinBytes(open)
  const contents = await readLetters(objects, within)
  const payloads: PendingPayload[] = []
  for (const letter of within) {
    const reason = addToPayload(payloads, workspaceId, letter, contents.get(letter))
    if (reason !== undefined) skipped.push({ key: letter, reason })
  }
  const notReached = new Set<LetterKey>(open.slice(within.length))
  let replayed = 0
  let isBusy = false
  for (const payload of payloads) {
    const taken = signal.aborted ? 'busy' : await replayPayload(deps, workspaceId, payload)
    if (taken === 'busy') {
      isBusy = true
      for (const { letter } of payload.entries) notReached.add(letter)
      continue
    }
    skipped.push(...taken)
    replayed += payload.entries.length - taken.length
  }
  return { replayed, skipped, next: beforeFirst(notReached, letters, step) ?? next, isBusy }
}

/** Letters that are stored need no look at them, unless they are named. */
function withDead(selection: Selection): Selection {
  return 'filter' in selection ? { filter: { ...selection.filter, outcome: 'dead' } } : selection
}

/** Returns the position before the first letter that was not reached, or undefined if all were. */
function beforeFirst(
  notReached: ReadonlySet<LetterKey>,
  letters: readonly Letter[],
  { after }: Step,
): ReplayStep['next'] {
  const first = letters.findIndex(letter => notReached.has(letter))
  return first < 0 ? undefined : { after: letters[first - 1] ?? after }
}

function reasonToSkip(letter: Letter, claim: ClaimState | undefined): SkipReason | undefined {
  if (claim?.isPurged) return 'purged'
  if (letter.outcome === 'stored') return 'replayed'
  if (claim !== undefined && claim.attempt > letter.attempt) return 'replaying'
  if (letter.objectKey === '') return 'bytes_missing'
  return isReplayable(letter) ? undefined : 'not_replayable'
}

/** Reports whether it is known which records of a letter are not stored, and some of them can be. */
export function isReplayable(letter: Pick<Letter, 'queue' | 'rejected' | 'storedRecords'>): boolean {
  const { queue, rejected, storedRecords } = letter
  if (NOT_REPLAYED.has(queue)) return false
  const withPositions = rejected.filter(({ indexes }) => indexes.length > 0)
  const areAllKnown = withPositions.every(({ count, indexes }) => count === indexes.length)
  return areAllKnown && (withPositions.length > 0 || (rejected.length === 0 && storedRecords === 0))
}

function withinBytes(letters: readonly Letter[]): Letter[] {
  let bytes = 0
  return letters.filter(({ length }, i) => {
    bytes += length
    return i === 0 || bytes <= MAX_STEP_BYTES
  })
}

interface ReplayEntry {
  readonly letter: Letter
  readonly frame: PayloadFrame
  readonly attributes: string
  readonly cost: number
}

interface PendingPayload {
  /** Names queue, surface and stored tables, which the letters of a payload have in common. */
  readonly group: string
  readonly entries: ReplayEntry[]
  bytes: number
  cost: number
}

/** Adds a letter to the payload that it fits into. Returns the reason if it cannot be replayed. */
function addToPayload(
  payloads: PendingPayload[],
  workspaceId: string,
  letter: Letter,
  content: LetterContent | undefined,
): SkipReason | undefined {
  if (content === undefined) return 'bytes_missing'
  const { frame, described } = content
  if (described === undefined) return 'not_replayable'
  // The index and the object are written by different workers. What is stored must belong to who asks for it.
  if (frame.workspaceId !== workspaceId || frame.surfaceId !== letter.surfaceId) return 'bytes_missing'
  const cost = costOf(frame)
  const bytes = frameBytes(frame)
  const group = JSON.stringify([letter.queue, letter.surfaceId, letter.storedTables])
  let payload = payloads.findLast(pending => pending.group === group)
  const fits =
    payload !== undefined &&
    payload.entries.length < MAX_FRAMES &&
    payload.bytes + bytes <= MAX_PAYLOAD_BYTES &&
    payload.cost + cost <= MAX_COST
  if (payload === undefined || !fits) {
    payload = { group, entries: [], bytes: 0, cost: 0 }
    payloads.push(payload)
  }
  payload.entries.push({ letter, frame, attributes: described.attributes, cost })
  payload.bytes += bytes
  payload.cost += cost
  return undefined
}

function costOf({ contentType, contentEncoding, body }: PayloadFrame): number {
  const decoded = statedDecodedBytes(contentEncoding, body, EXPORT_DECOMPRESSED_BYTES)
  return Math.ceil(Math.max(MIN_REQUEST_COST, body.length, estimatedWork(contentType, body.length, decoded)))
}

/** Replays a payload without the letters that others have claimed meanwhile. Returns those. */
async function replayPayload(
  { claims, jobs, now }: ReplayLettersDeps,
  workspaceId: string,
  { entries: all }: PendingPayload,
): Promise<SkippedLetter[] | 'busy'> {
  const skipped: SkippedLetter[] = []
  let entries = all
  while (entries.length > 0) {
    const [first] = entries as [ReplayEntry, ...ReplayEntry[]]
    const { queue, storedTables } = first.letter
    const jobId = newJobId()
    const nowMs = now()
    const payload = encodePayload(entries.map(entry => frameOf(entry, nowMs)))
    const cost = entries.reduce((sum, entry) => sum + entry.cost, 0)
    const batch = storedTables.length > 0 ? { batchId: randomUUID(), storedTables } : undefined
    const letters = entries.map(({ letter }) => letter)
    const taken = await claims.replay(
      workspaceId,
      { queue, jobId, payload, cost, letters, batch, member: shareMember(first.frame) },
      nowMs,
    )
    if (taken === 'busy') return 'busy'
    if (taken.length === 0) {
      await jobs.add(queue, jobId, { payloads: entries.length, bytes: payload.length }, nowMs)
      return skipped
    }
    const inTheWay = new Set(taken)
    skipped.push(...letters.filter((_, i) => inTheWay.has(i)).map(key => ({ key, reason: 'replaying' }) as const))
    entries = entries.filter((_, i) => !inTheWay.has(i))
  }
  return skipped
}

function frameOf({ letter, frame, attributes, cost }: ReplayEntry, replayedAtMs: number): PayloadFrame {
  const { queue, jobId, index, attempt, objectKey, offset, length, bodyBytes, sessionId } = letter
  const { storedTables, rejected, storedRecords, reason, detail } = letter
  const replayed = {
    ...{ queue, jobId, index, attempt: attempt + 1, replayedAtMs, objectKey, offset, length, bodyBytes, sessionId },
    ...{ storedTables: [...storedTables], rejected: [...rejected], storedRecords },
    reason: detail === '' ? reason : `${reason}: ${detail}`,
  }
  return { ...frame, cost, attributes: withReplay(attributes, replayed) }
}
