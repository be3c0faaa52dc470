import { TransientError } from '../runtime/errors.ts'

export interface Semaphore {
  /** Runs when one of the places is free, in the order of arrival. Throws a TransientError when the signal fires first. */
  run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T>
}

export function createSemaphore(places: number): Semaphore {
  let free = places
  const waiting = new Set<() => void>()

  function enter(signal: AbortSignal): Promise<void> {
    if (free > 0) {
      free--
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const admit = () => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        waiting.delete(admit)
        reject(new TransientError('too many large reads at once'))
      }
      waiting.add(admit)
      signal.addEventListener('abort', giveUp, { once: true })
      if (signal.aborted) giveUp()
    })
  }

  /** The place goes to whoever waits longest, without ever being free: nobody overtakes. */
  function leave(): void {
    const [next] = waiting
    if (next === undefined) {
      free++
      return
    }
    waiting.delete(next)
    next()
  }

  return {
    async run(signal, task) {
      await enter(signal)
      try {
        return await task()
      } finally {
        leave()
      }
    },
  }
}
