import type { ReceiptSeal } from '../../shared/ids/receipt.ts'
import { packPayload } from '../../shared/queue/packed-payload.ts'
import { appendFrame, beginPayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { TransientError } from '../../shared/runtime/errors.ts'
import type { SurfaceShare } from '../admission/surface-share.ts'
import type { SurfaceRequests } from './accept-script.ts'
import type { CommitOutcome } from './payload-writer.ts'
import type { OpenCommit } from './receipt-issuer.ts'

/** The largest commit that joins the payload of the job before it, or whose payload others may join. */
export const MAX_JOINED_BYTES = 512 * 1024

/**
 * Bytes of bodies that came uncompressed from which a commit is packed. Packing costs the edge more CPU than it saves Redis, so
 * that it is for commits which would fill Redis and its log within seconds. A payload has either packed or plain frames, so a
 * commit that joins one is never packed.
 */
const PACKED_FROM_BYTES = 1.5 * MAX_JOINED_BYTES

/** A request that waits for the commit of its frame. Exactly one of both methods is called, once. */
export interface WaitingRequest {
  readonly share: Pick<SurfaceShare, 'member' | 'backlog'>
  readonly cost: number
  /**
   * Called when Redis has the frame on disk, or its condition has refused it. The client gets the id of its receipt, whose bytes
   * change after the call.
   */
  confirmed(receiptId: Buffer, outcome: CommitOutcome): void
  /** Called when Redis did not confirm the write. The frame is then stored once or not at all. */
  failed(error: TransientError): void
}

/** The frames of one commit, from the first one until their requests are answered. */
export class Group {
  readonly buffer: Buffer
  readonly arrivedAtMs: number
  /** When its time is up, on the clock of `performance.now`. It began with the arrival of the first frame. */
  readonly deadline: number
  /** Size of the payload before it is packed. */
  bytes: number
  frames = 0
  cost = 0
  /** The most that a surface in the group has (`SurfaceShare.backlog`). */
  backlog = 0
  /** The requests of each surface, by its member of `shares`. */
  readonly surfaces = new Map<string, SurfaceRequests>()
  readonly #receipts: OpenCommit
  /** The requests of the frames, and the seals of their receipts. */
  readonly #waiting: WaitingRequest[] = []
  readonly #seals: ReceiptSeal[] = []
  /** Bytes of the bodies that came uncompressed. */
  #plainBytes = 0
  #payload: Buffer | Promise<Buffer> | undefined

  constructor(buffer: Buffer, receipts: OpenCommit, arrivedAtMs: number, deadline: number) {
    this.buffer = buffer
    this.#receipts = receipts
    this.arrivedAtMs = arrivedAtMs
    this.deadline = deadline
    this.bytes = beginPayload(buffer)
  }

  /** Copies the frame of a request, body included. */
  append(frame: PayloadFrame, request: WaitingRequest): void {
    const { share, cost } = request
    this.#seals.push(this.#receipts.issue(frame))
    this.#waiting.push(request)
    this.bytes = appendFrame(this.buffer, this.bytes, frame, this.#receipts.receipt, cost)
    if (frame.contentEncoding === 'identity') this.#plainBytes += frame.body.length
    this.frames++
    this.cost += cost
    const surface = this.surfaces.get(share.member)
    if (surface === undefined) this.surfaces.set(share.member, { cost, requests: 1 })
    else {
      surface.cost += cost
      surface.requests++
    }
    this.backlog = Math.max(this.backlog, share.backlog)
  }

  /** Answers all requests: they are stored or refused together. */
  answer(end: CommitOutcome | TransientError): void {
    for (let i = 0; i < this.#waiting.length; i++) {
      const request = this.#waiting[i] as WaitingRequest
      if (end instanceof Error) request.failed(end)
      else request.confirmed(this.#receipts.idOf(i, this.#seals[i] as ReceiptSeal), end)
    }
  }

  /**
   * Returns the bytes to commit, after which no frame may be appended. They are packed on another thread if that is worth it,
   * so a group that is closed early is packed while the groups before it are committed.
   */
  close(): Buffer | Promise<Buffer> {
    if (this.#payload === undefined) {
      const payload = this.buffer.subarray(0, this.bytes)
      const isPlain = this.#plainBytes >= PACKED_FROM_BYTES && this.#plainBytes >= this.bytes / 2
      this.#payload = isPlain ? packPayload(payload) : payload
    }
    return this.#payload
  }
}
