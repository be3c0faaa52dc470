/** Bytes of commits after which an observation has lost most of its weight: some seconds of a busy queue. */
const WINDOW_BYTES = 64 * 1024 * 1024

/**
 * How much of the bytes of requests Redis holds, in recent commits of one queue: all, or a tenth where commits are packed. What
 * is learned late is bounded: after `WINDOW_BYTES` of other data, the share is that of the other data.
 */
export class HeldShare {
  /** 0 to 1. */
  value = 1

  /** Takes a commit into account, by its size before it was packed. */
  learn(bytes: number, heldBytes: number): void {
    this.value += (heldBytes / bytes - this.value) * Math.min(1, bytes / WINDOW_BYTES)
  }
}
