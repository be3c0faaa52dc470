import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../schemas/units.ts'

/** Delay of each attempt after the one before it failed. Source: Standard Webhooks 1.0.0, "Deliverability and reliability". */
const DELAYS_MS = [
  ...[0, 5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2, 5, 10, 14, 20, 24].map(hours => hours * HOUR_MS),
]

/** Share of a delay that is added at random, so that deliveries that failed together are not repeated together. */
const JITTER = 0.1

/** A delivery whose newest attempt failed. */
interface FailedDelivery {
  /** Attempts so far, the failed one included. */
  readonly attempts: number
  readonly failedAtMs: number
  /** Delay that the receiver has requested in its last answer. */
  readonly retryAfterMs?: number | undefined
}

/**
 * Returns the time of the next attempt in milliseconds, or undefined if the last of ten has failed, about 76 hours after the
 * first. A receiver can delay it by at most a day (`post.ts`), and never bring it forward. `random` is from 0 to 1.
 */
export function nextAttemptAtMs(
  { attempts, failedAtMs, retryAfterMs = 0 }: FailedDelivery,
  random = Math.random(),
): number | undefined {
  const delayMs = DELAYS_MS[attempts]
  if (delayMs === undefined) return undefined
  return failedAtMs + Math.round(Math.max(delayMs, retryAfterMs) * (1 + JITTER * random))
}
