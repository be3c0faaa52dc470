import { LARGE_FRAME_BYTES } from '../../shared/queue/large-values.ts'

/** Bytes of commits after which an observation has lost most of its weight: some seconds of a busy queue. */
const WINDOW_BYTES = 64 * 1024 * 1024

/**
 * How much of the bytes of requests Redis holds, in recent group commits of one queue: all, or a tenth where commits are packed.
 * What is learned late is bounded: after `WINDOW_BYTES` of other data, the share is that of the other data.
 */
export class HeldShare {
  #value = 1

  /**
   * Returns the share of a body of this many bytes, 0 to 1. One that is written alone counts whole, however well it can be packed:
   * a flood of them would occupy edges and workers long before it fills Redis.
   */
  of(bytes: number): number {
    return bytes > LARGE_FRAME_BYTES ? 1 : this.#value
  }

  /** Takes a commit into account, by its size before it was packed. */
  learn(bytes: number, heldBytes: number): void {
    this.#value += (heldBytes / bytes - this.#value) * Math.min(1, bytes / WINDOW_BYTES)
  }
}
