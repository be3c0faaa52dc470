import { LARGE_FRAME_BYTES } from '../../shared/queue/large-values.ts'

/** Bytes of commits after which an observation has a third of its weight: a second or two of a busy queue. */
const WINDOW_BYTES = 64 * 1024 * 1024
/**
 * Surfaces share one average, so that one whose bodies cannot be packed may be counted by the bodies of others. With a floor,
 * Redis holds four times as many bytes as counted at most. Packed spans cost more by their work than this share of their bytes.
 */
const LEAST_SHARE = 0.25

/**
 * How much of the bytes of requests Redis holds, in recent group commits of one queue: all, or a tenth where commits are packed. An
 * estimate: what Redis holds in fact is bounded by REDIS_MAX_MEMORY_SHARE.
 */
export class HeldShare {
  #value = 1

  /**
   * Returns the share of a body of this many bytes, from `LEAST_SHARE` to 1. One that is written alone counts whole, however well
   * it can be packed: a flood of them would occupy edges and workers long before it fills Redis.
   */
  of(bytes: number): number {
    return bytes > LARGE_FRAME_BYTES ? 1 : Math.max(this.#value, LEAST_SHARE)
  }

  /** Takes a commit into account, by its size before it was packed. */
  learn(bytes: number, heldBytes: number): void {
    this.#value += (heldBytes / bytes - this.#value) * Math.min(1, bytes / WINDOW_BYTES)
  }
}
