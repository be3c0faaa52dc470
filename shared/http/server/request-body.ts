import type { Problem } from '../../../schemas/http/problems.ts'
import type { FairShares } from '../../concurrency/fair-shares.ts'
import { type BodyMemory, isMapped } from './body-memory.ts'
import { bodyStalled, bodyTooSlow } from './problem.ts'

const FIRST_ALLOCATION_BYTES = 1024

/** An empty body. */
export const NO_BYTES = Buffer.alloc(0)

/** The owner of bodies whose sender is not known yet. */
export const UNKNOWN_OWNER = ''

/** State that the bodies of one server share. */
export interface BodyContext {
  /** Bytes of bodies in memory, by owner. */
  readonly held: FairShares
  /** Number of bodies that arrive in more than one piece, by owner. */
  readonly places: FairShares
  /** Buffers for bodies that arrive in pieces. */
  readonly memory: BodyMemory
  /** How slowly a body may arrive. */
  readonly pace: BodyPace
}

/** How slowly a body may arrive. Its sender is never refused while it sends `bytesPerSweep` after the first `graceSweeps`. */
interface BodyPace {
  /** Number of sweeps without data after which a body is refused. */
  readonly idleSweeps: number
  /** Number of sweeps in which even an empty body may be incomplete. */
  readonly graceSweeps: number
  /** Number of received bytes that extend the deadline of the whole body by one sweep. */
  readonly bytesPerSweep: number
}

/**
 * The bytes of one request while they arrive. Memory follows what has arrived, not the announced length, because
 * announcing costs the sender nothing. Every allocation counts in the shares of its owner before it is made, the copy while
 * the buffer grows included. It is one buffer that doubles: a list of chunks would let a client that sends single bytes use
 * a hundred times the counted memory.
 */
export class RequestBody {
  readonly #context: BodyContext
  readonly #mostBytes: number
  #owner: string
  #own: Buffer | undefined
  /** A body that arrived in one piece. Its memory belongs to uWS. */
  #lent: Buffer | undefined
  #size = 0
  #heldBytes = 0
  #hasPlace = false
  #isReleased = false
  #sweeps = 0
  #quietSweeps = 0

  /** `mostBytes` is the announced length, or else the limit. It bounds the growth. */
  constructor(context: BodyContext, mostBytes: number, owner: string) {
    this.#context = context
    this.#mostBytes = mostBytes
    this.#owner = owner
  }

  get size(): number {
    return this.#size
  }

  get bytes(): Buffer {
    return this.#lent ?? this.#own?.subarray(0, this.#size) ?? NO_BYTES
  }

  /** Counts the bytes for this owner from now on. Returns false, and frees them, if they exceed its share. */
  assign(owner: string): boolean {
    const bytes = this.#heldBytes
    if (bytes > 0) this.#context.held.give(this.#owner, bytes)
    this.#owner = owner
    if (bytes === 0 || this.#context.held.take(owner, bytes)) return true
    this.#heldBytes = 0
    this.release()
    return false
  }

  /**
   * Copies the chunk, whose memory belongs to the server. Returns false, keeping nothing of the chunk, if it exceeds the share of
   * the owner.
   */
  append(chunk: ArrayBuffer | Uint8Array, isLast: boolean): boolean {
    this.#quietSweeps = 0
    if (this.#isReleased || chunk.byteLength === 0) return true
    const needed = this.#size + chunk.byteLength
    if (!this.#makeRoom(needed, isLast)) return false
    this.#own?.set(chunk instanceof Uint8Array ? chunk : new Uint8Array(chunk), this.#size)
    this.#size = needed
    return true
  }

  /**
   * Uses a body that arrived in one piece without a copy. Its memory belongs to uWS, which frees it after the current
   * call.
   */
  lend(chunk: ArrayBuffer): boolean {
    if (!this.#context.held.take(this.#owner, chunk.byteLength)) return false
    this.#heldBytes = chunk.byteLength
    this.#lent = Buffer.from(chunk)
    this.#size = chunk.byteLength
    return true
  }

  /** Counts a sweep. Returns the problem of a body that has arrived too slowly so far. */
  sweep(): Problem | undefined {
    const { idleSweeps, graceSweeps, bytesPerSweep } = this.#context.pace
    this.#sweeps++
    this.#quietSweeps++
    if (this.#quietSweeps > idleSweeps) return bodyStalled
    return this.#sweeps > graceSweeps + this.#size / bytesPerSweep ? bodyTooSlow : undefined
  }

  /**
   * Takes a place among the bodies that arrive in more than one piece, unless the body has one. Returns false if the owner
   * may have no more of them.
   */
  takePlace(): boolean {
    this.#hasPlace ||= this.#context.places.take(this.#owner, 1)
    return this.#hasPlace
  }

  /** Gives the place back, because the rest of the body has arrived or is not kept. */
  leavePlace(): void {
    if (this.#hasPlace) this.#context.places.give(this.#owner, 1)
    this.#hasPlace = false
  }

  /** Frees the buffer but keeps its bytes in the count, because the caller now holds a copy. */
  forget(): void {
    if (this.#own) this.#context.memory.giveBack(this.#own)
    this.#own = undefined
    this.#lent = undefined
  }

  /** Frees the buffer and stops counting its bytes. Later chunks are dropped. Calling it again does nothing. */
  release(): void {
    if (this.#heldBytes > 0) this.#context.held.give(this.#owner, this.#heldBytes)
    this.#heldBytes = 0
    this.leavePlace()
    this.forget()
    this.#isReleased = true
  }

  #makeRoom(needed: number, isLast: boolean): boolean {
    const own = this.#own
    const capacity = own?.length ?? 0
    if (needed <= capacity) return true
    const most = Math.max(this.#mostBytes, needed)
    const wanted = isLast ? needed : Math.min(Math.max(2 * capacity, needed, FIRST_ALLOCATION_BYTES), most)
    return own && isMapped(own) ? this.#growInPlace(own, wanted) : this.#growByCopy(own, wanted, most)
  }

  #growInPlace(own: Buffer, capacity: number): boolean {
    const before = this.#heldBytes
    if (!this.#hold(capacity)) return false
    const grown = this.#context.memory.grow(own, capacity)
    if (grown === undefined) return !this.#hold(before)
    this.#own = grown
    return true
  }

  #growByCopy(own: Buffer | undefined, wanted: number, most: number): boolean {
    const { memory } = this.#context
    const before = this.#heldBytes
    const cheapest = memory.cheapestCapacity(wanted)
    const capacity = this.#hold(before + cheapest) ? cheapest : wanted
    if (this.#heldBytes === before && !this.#hold(before + capacity)) return false
    const grown = memory.take(capacity, most)
    if (grown === undefined) return !this.#hold(before)
    if (own) {
      own.copy(grown, 0, 0, this.#size)
      memory.giveBack(own)
    }
    this.#own = grown
    return this.#hold(capacity)
  }

  /** Makes this the number of counted bytes. Returns false, and changes nothing, if it exceeds the share of the owner. */
  #hold(bytes: number): boolean {
    const more = bytes - this.#heldBytes
    if (more < 0) this.#context.held.give(this.#owner, -more)
    else if (!this.#context.held.take(this.#owner, more)) return false
    this.#heldBytes = bytes
    return true
  }
}
