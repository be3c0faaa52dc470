import type { DeadLetter, RejectedRecords } from '../../schemas/queues/dead-letters.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { MIB } from '../../schemas/units.ts'
import { deadLetterKey } from '../../shared/object-store/object-keys.ts'
import { frameBytes, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { type Reason, type RejectedByReason, reasonText } from '../../shared/runtime/reason.ts'
import { frameMoves } from './moves.ts'
import type { Move } from './payloads/payload-store.ts'

/**
 * Bytes of the dead letters that are moved in one payload, unless one letter is larger. Each surface in a payload gets one
 * object, and a worker has two payloads in memory.
 */
const PAYLOAD_BYTES = 8 * MIB

/** A request that becomes a dead letter, because it is not stored or some of its records are not. */
export interface RefusedFrame {
  readonly jobId: string
  /** Position of the request in the payload of that job. */
  readonly index: number
  readonly frame: PayloadFrame
  readonly reason: Reason
  /** Tables that contain the rows of the request, because a later table refused its rows. */
  readonly storedTables?: readonly string[] | undefined
  /** Records that are left out. If there are any, all other records of the request are stored. */
  readonly rejected?: RejectedByReason
  /** Number of records of the request that are stored. */
  readonly storedRecords?: number
}

interface Part {
  readonly frames: PayloadFrame[]
  bytes: number
}

/**
 * The dead letters of one job or batch, and their moves to the queue `dead-letters`. The ids of the moves derive from the
 * id of that job or batch, so that repeating a move adds nothing. The same letters in the same order always have the same
 * object keys.
 */
export class LetterMoves {
  readonly #queue: QueueName
  readonly #id: string
  readonly #now: () => number
  readonly #parts: Part[] = []
  #bytes = 0

  /** `id` is that of the job or batch that is finished by the script with the moves. */
  constructor(queue: QueueName, id: string, now: () => number = Date.now) {
    this.#queue = queue
    this.#id = id
    this.#now = now
  }

  /** Bytes of the letters, which are in memory until they are moved. */
  get bytes(): number {
    return this.#bytes
  }

  /** Adds a letter and returns the key of the object that will contain it. Keeps the body of its frame. */
  add(refused: RefusedFrame): string {
    const attributes = JSON.stringify(this.#describe(refused))
    const bytes = frameBytes({ ...refused.frame, attributes })
    const frame: PayloadFrame = { ...refused.frame, attributes, cost: bytes }
    let part = this.#parts.at(-1)
    if (part === undefined || part.bytes + bytes > PAYLOAD_BYTES) {
      part = { frames: [], bytes: 0 }
      this.#parts.push(part)
    }
    part.frames.push(frame)
    part.bytes += bytes
    this.#bytes += bytes
    return deadLetterKey({ ...frame, queue: this.#queue, jobId: this.#jobId(this.#parts.length - 1) })
  }

  /** Returns the moves of all letters. */
  moves(): Move[] {
    return this.#parts.flatMap(({ frames }, i) => frameMoves('dead-letters', this.#jobId(i), frames))
  }

  #jobId(part: number): string {
    return part === 0 ? `dead-${this.#id}` : `dead-${this.#id}-${part}`
  }

  #describe({ jobId, index, frame, reason, rejected = {}, storedRecords = 0, storedTables = [] }: RefusedFrame) {
    return {
      queue: this.#queue,
      jobId,
      index,
      reason: reasonText(reason),
      refusedAtMs: this.#now(),
      storedTables: [...storedTables],
      rejected: rejectedRecords(rejected),
      storedRecords,
      attributes: frame.attributes,
    } satisfies DeadLetter
  }
}

/** Returns the rejected records as a letter names them. */
export function rejectedRecords(rejected: RejectedByReason): RejectedRecords[] {
  return Object.entries(rejected).map(([reason, { count, indexes }]) => ({ reason, count, indexes }))
}
