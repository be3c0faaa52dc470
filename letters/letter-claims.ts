import type { Letter, LetterKey } from '../clickhouse/queries/letters/letter.ts'
import type { QueueName } from '../schemas/queues/names.ts'
import { DAY_MS, MIB } from '../schemas/units.ts'
import { PIECE_BYTES, writeInPieces } from '../shared/queue/large-values.ts'
import type { QueueKeys } from '../shared/queue/queue.ts'
import { queueScript } from '../shared/queue/queue-script.ts'
import type { Queues } from '../shared/queue/queues.ts'
import { settledBeforeMs } from '../shared/queue/watermark.ts'
import { TransientError } from '../shared/runtime/errors.ts'

/**
 * Cost that a surface may have unfinished in a queue when a letter of it is replayed, and cost of all surfaces in that
 * queue: 0.1 and 1.8 s of work. So a replay makes way for requests of clients, and takes what is left.
 */
const MAX_SURFACE_COST = 16 * MIB
const MAX_QUEUE_COST = 256 * MIB

/** A claim is kept for longer than its letter by this much. */
const KEPT_LONGER_MS = 7 * DAY_MS
const PURGED = 'purged'

const REPLAY = queueScript('letters/replay-letters')
const PURGE = queueScript('letters/purge-letters')

/** A letter to claim, and the queue and workspace that it belongs to. */
type ClaimedLetter = LetterKey & Pick<Letter, 'queue' | 'attempt'>

/** State of a letter by its claim. */
export interface ClaimState {
  readonly isPurged: boolean
  /** The attempt that was begun last; 0 if there was none. */
  readonly attempt: number
  readonly replayedAtMs: number
}

/** The requests of one surface that are replayed as one payload. */
interface ReplayPayload {
  readonly queue: QueueName
  readonly jobId: string
  readonly payload: Buffer
  readonly member: string
  readonly cost: number
  readonly letters: readonly ClaimedLetter[]
  /** Names a batch of the job that leaves these tables out, because they have the rows of the letters already. */
  readonly batch?: { readonly batchId: string; readonly storedTables: readonly string[] } | undefined
}

/**
 * Claims of dead letters: a hash for each job that contained them, in the first queue of its name, into which they are replayed
 * whichever queue they come from. So a claim is found again whatever the number of queues is. A letter is
 * claimed in the step that accepts its payload, so of any number of replays one is stored. A claim lasts as long as the letter
 * may, also when the row with the outcome of its replay is late.
 */
export class LetterClaims {
  readonly #queues: Queues
  readonly #retentionMs: number

  constructor(queues: Queues, retentionDays: number) {
    this.#queues = queues
    this.#retentionMs = retentionDays * DAY_MS
  }

  /** Returns the claim of each letter, or undefined where there is none. */
  async states(
    workspaceId: string,
    letters: readonly (LetterKey & Pick<Letter, 'queue'>)[],
  ): Promise<(ClaimState | undefined)[]> {
    const byKey = new Map<string, number[]>()
    for (const [i, { queue, jobId }] of letters.entries()) {
      const key = this.#keysOf(queue).claims(workspaceId, jobId)
      byKey.set(key, [...(byKey.get(key) ?? []), i])
    }
    const states: (ClaimState | undefined)[] = new Array(letters.length)
    await Promise.all(
      [...byKey].map(async ([key, positions]) => {
        const values = await this.#queues.common.hmget(key, ...positions.map(i => String(letters[i]?.index)))
        for (const [at, i] of positions.entries()) states[i] = stateOf(values[at])
      }),
    )
    return states
  }

  /**
   * Accepts a payload and claims its letters, or does nothing. Returns the positions of the letters in the way, or `busy` if
   * the queue has no room for replays.
   */
  async replay(workspaceId: string, replay: ReplayPayload, nowMs: number): Promise<readonly number[] | 'busy'> {
    const { queue, jobId, payload, member, cost, letters, batch } = replay
    const keys = this.#keysOf(queue)
    const isLarge = payload.length > PIECE_BYTES
    if (isLarge) await writeInPieces(this.#queues.common, keys.arriving(jobId), payload)
    const names = [
      keys.payload(jobId),
      keys.arriving(jobId),
      keys.pending,
      keys.flow,
      keys.shares,
      keys.batchOf,
      keys.batches,
    ]
    const record = batch ? JSON.stringify({ jobIds: [jobId], storedTables: batch.storedTables }) : ''
    const args = [
      ...[jobId, isLarge ? '' : payload, letters.length, payload.length, cost, member],
      ...[MAX_SURFACE_COST, MAX_QUEUE_COST, batch?.batchId ?? '', record],
      ...letters.flatMap(letter => [
        ...[letter.index, letter.attempt, letter.attempt + 1, this.#expiryOf(letter, nowMs)],
      ]),
    ]
    const claims = letters.map(letter => keys.claims(workspaceId, letter.jobId))
    const reply = await REPLAY.run(this.#queues.common, [...names, ...claims], args).catch(busyIfFull)
    if (reply === 'gone') throw new TransientError('the pieces of a replayed payload have expired')
    return reply as readonly number[] | 'busy'
  }

  /**
   * Claims letters for good, so that none is replayed any more. Returns the positions of those that are being replayed. A
   * replay that has no outcome although everything of its time is settled was lost, and is not in the way.
   */
  async purge(workspaceId: string, letters: readonly ClaimedLetter[], nowMs: number): Promise<readonly number[]> {
    const lostBeforeMs = await settledBeforeMs(this.#queues, workspaceId)
    const taken: number[] = []
    for (const queue of new Set(letters.map(letter => letter.queue))) {
      const positions = [...letters.keys()].filter(i => letters[i]?.queue === queue)
      const ours = positions.map(i => letters[i] as ClaimedLetter)
      const claims = ours.map(letter => this.#keysOf(queue).claims(workspaceId, letter.jobId))
      const args = ours.flatMap(letter => [letter.index, letter.attempt, this.#expiryOf(letter, nowMs)])
      const found = await PURGE.run(this.#queues.common, claims, [lostBeforeMs, ...args])
      taken.push(...(found as number[]).map(at => positions[at] as number))
    }
    return taken
  }

  #keysOf(queue: QueueName): QueueKeys {
    return this.#queues.firstOf(queue).keys
  }

  #expiryOf({ receivedAtMs }: LetterKey, nowMs: number): number {
    return Math.max(nowMs, Math.floor(receivedAtMs) + this.#retentionMs) + KEPT_LONGER_MS
  }
}

function stateOf(value: string | null | undefined): ClaimState | undefined {
  if (value === null || value === undefined) return undefined
  const [attempt = '', replayedAtMs] = value.split(' ')
  const isPurged = attempt === PURGED
  return { isPurged, attempt: isPurged ? 0 : Number(attempt), replayedAtMs: Number(replayedAtMs ?? 0) }
}

/** Redis refuses to run a script that adds data when its memory is full. */
function busyIfFull(error: unknown): 'busy' {
  if (error instanceof Error && error.message.startsWith('OOM')) return 'busy'
  throw error
}
