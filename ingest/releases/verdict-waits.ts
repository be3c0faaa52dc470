import type { Redis } from 'ioredis'
import { type Verdict, verdictSchema } from '../../schemas/queues/source-maps.ts'
import { VERDICTS_CHANNEL, verdictKey } from '../../shared/queue/upload-keys.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** Requests whose clients wait for what a worker finds of them. */
export interface VerdictWaits {
  /** A place to wait in; undefined when all are taken. Whoever takes one ends it. */
  begin(): VerdictWait | undefined
  readonly size: number
  /** Ends every wait, and those to come, without a verdict. */
  stop(): void
}

export interface VerdictWait {
  /** Undefined when there is none by the deadline: the work goes on. */
  verdict(attempt: string): Promise<Verdict | undefined>
  end(): void
}

export interface VerdictWaitsOptions {
  readonly maxWaiting: number
  readonly deadlineMs: number
  /** Verdicts are looked for so often besides: a message may be lost with its connection. */
  readonly pollMs: number
  readonly onSettled?: (found: boolean, durationMs: number) => void
}

/**
 * Looks for a verdict when its attempt is called out on the channel, once at the beginning, and at an interval. All that
 * is waited for at a look is one command. `subscriber` is a connection of its own.
 */
export function createVerdictWaits(
  deps: { redis: Redis; subscriber: Redis; logger: Logger },
  options: VerdictWaitsOptions,
): VerdictWaits {
  const { redis, subscriber, logger } = deps
  /** By attempt; the same request, sent twice, waits for the same. */
  const waiting = new Map<string, Set<(verdict: Verdict | undefined) => void>>()
  let taken = 0
  let stopped = false

  const subscribe = () => {
    subscriber.subscribe(VERDICTS_CHANNEL).catch(error => {
      logger.warn({ error: describeError(error) }, 'verdicts cannot be followed')
    })
  }
  if (subscriber.status === 'ready') subscribe()
  subscriber.on('ready', subscribe)
  subscriber.on('message', (_channel, attempt: string) => {
    if (waiting.has(attempt)) void look([attempt])
  })
  const timer = setInterval(() => void look([...waiting.keys()]), options.pollMs).unref()

  async function look(attempts: readonly string[]): Promise<void> {
    if (attempts.length === 0) return
    try {
      const found = await redis.mget(attempts.map(verdictKey))
      for (const [i, attempt] of attempts.entries()) {
        const text = found[i]
        if (text) settle(attempt, verdictSchema.parse(JSON.parse(text)))
      }
    } catch (error) {
      logger.debug({ error: describeError(error) }, 'verdicts could not be looked for')
    }
  }

  function settle(attempt: string, verdict: Verdict | undefined): void {
    for (const resolve of waiting.get(attempt) ?? []) resolve(verdict)
  }

  function verdictOf(attempt: string): Promise<Verdict | undefined> {
    if (stopped) return Promise.resolve(undefined)
    const startedAt = performance.now()
    return new Promise(resolve => {
      const waiters = waiting.get(attempt) ?? new Set()
      const finish = (verdict: Verdict | undefined) => {
        clearTimeout(deadline)
        waiters.delete(finish)
        if (waiters.size === 0) waiting.delete(attempt)
        options.onSettled?.(verdict !== undefined, performance.now() - startedAt)
        resolve(verdict)
      }
      const deadline = setTimeout(() => finish(undefined), options.deadlineMs)
      waiting.set(attempt, waiters.add(finish))
      void look([attempt])
    })
  }

  return {
    begin() {
      if (taken >= options.maxWaiting) return undefined
      taken++
      let ended = false
      return {
        verdict: verdictOf,
        end() {
          if (!ended) taken--
          ended = true
        },
      }
    },
    get size() {
      return taken
    },
    stop() {
      stopped = true
      clearInterval(timer)
      for (const attempt of [...waiting.keys()]) settle(attempt, undefined)
    },
  }
}
