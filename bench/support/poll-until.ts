import { setTimeout as delay } from 'node:timers/promises'

/** Polls until the condition is true. Throws after the deadline. */
export async function pollUntil(
  what: string,
  deadlineMs: number,
  isTrue: () => Promise<boolean> | boolean,
  everyMs = 20,
): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`timed out after ${deadlineMs / 1_000} s waiting until ${what}`)
    await delay(everyMs)
  }
}
