import { ConfigError, EXIT_USAGE } from './config.ts'
import { errorFields } from './errors.ts'
import type { Logger } from './logger.ts'

/** The shutdown of a process. */
export interface Lifecycle {
  /** Registers a step of the shutdown. Steps run last in, first out, each within the remaining deadline. */
  onStop(name: string, step: () => Promise<void> | void): void
  /** Resolves when every step has run or the deadline has passed. Calling it again returns the same promise. */
  stop(reason: string): Promise<void>
}

/** Creates the shutdown of a process, which runs its steps in reverse order within `deadlineMs` in total. */
export function createLifecycle(logger: Logger, deadlineMs: number): Lifecycle {
  const steps: { name: string; step: () => Promise<void> | void }[] = []
  let stopping: Promise<void> | undefined

  async function runSteps(reason: string): Promise<void> {
    logger.info({ reason }, 'stopping')
    const until = Date.now() + deadlineMs
    for (const { name, step } of steps.reverse()) {
      const remainingMs = Math.max(100, until - Date.now())
      try {
        await withDeadline(Promise.resolve(step()), remainingMs, `${name} did not stop in time`)
      } catch (error) {
        logger.error({ step: name, ...errorFields(error) }, 'a shutdown step failed')
      }
    }
    logger.info('stopped')
  }

  return {
    onStop: (name, step) => void steps.push({ name, step }),
    stop: reason => (stopping ??= runSteps(reason)),
  }
}

/** Rejects with an Error of this message if the promise has not settled after `deadlineMs`. */
export async function withDeadline<T>(promise: Promise<T>, deadlineMs: number, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), deadlineMs)
  })
  try {
    return await Promise.race([promise, deadline])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Stops the process on SIGTERM or SIGINT. An uncaught exception or rejection stops it with exit code 1. A ConfigError, such as a
 * port in use, is one line without a stack, and stops it with 2.
 */
export function runUntilSignal(lifecycle: Lifecycle, logger: Logger): void {
  const exitAfterStop = (reason: string, code: number) => {
    void lifecycle.stop(reason).then(() => process.exit(code))
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => exitAfterStop(signal, 0))
  const exitForFault = (error: unknown, kind: string) => {
    const isSetting = error instanceof ConfigError
    if (isSetting) logger.fatal(error.message)
    else logger.fatal({ err: error }, kind)
    exitAfterStop(isSetting ? 'a setting cannot be used' : kind, isSetting ? EXIT_USAGE : 1)
  }
  process.once('uncaughtException', error => exitForFault(error, 'uncaught exception'))
  process.once('unhandledRejection', error => exitForFault(error, 'unhandled rejection'))
}
