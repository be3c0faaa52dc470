import { setTimeout as delay } from 'node:timers/promises'

/** Polls until the condition gives a truthy value, and returns it. Throws after the deadline, naming what was awaited. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  options: { deadlineMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const deadlineAt = Date.now() + (options.deadlineMs ?? 15_000)
  for (;;) {
    const value = await condition()
    if (value) return value as NonNullable<T>
    if (Date.now() > deadlineAt) throw new Error(`waited in vain for: ${what}`)
    await delay(options.everyMs ?? 20)
  }
}
