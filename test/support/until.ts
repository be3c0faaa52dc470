import { setTimeout as delay } from 'node:timers/promises'
import { startAwakeClock } from './count-awake-ms.ts'

/**
 * Polls until the condition returns a truthy value, and returns that value. Throws after the deadline, with the name of
 * the condition. The deadline does not include pauses of the machine.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  options: { deadlineMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const deadlineMs = options.deadlineMs ?? 15_000
  const clock = startAwakeClock()
  try {
    for (;;) {
      const value = await condition()
      if (value) return value as NonNullable<T>
      if (clock.ms > deadlineMs) throw new Error(`timed out waiting for: ${what}`)
      await delay(options.everyMs ?? 20)
    }
  } finally {
    clock.stop()
  }
}
