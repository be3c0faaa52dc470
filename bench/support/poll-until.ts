import { setTimeout as delay } from 'node:timers/promises'

/** Asks again and again until the answer is true. Throws when it was not in time. */
export async function pollUntil(
  what: string,
  deadlineMs: number,
  isTrue: () => Promise<boolean> | boolean,
  everyMs = 20,
): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`waited ${deadlineMs / 1_000} s until ${what}`)
    await delay(everyMs)
  }
}
