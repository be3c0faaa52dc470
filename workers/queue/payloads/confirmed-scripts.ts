import type { Redis } from 'ioredis'
import { TransientError } from '../../../shared/runtime/errors.ts'
import type { Script, ScriptArgument } from '../../../shared/runtime/redis/script.ts'

/** How long replicas may take to confirm a script. */
const CONFIRM_WITHIN_MS = 2_000

/**
 * Runs scripts and waits until replicas have what they wrote. A replica that is promoted later then knows the batches whose
 * rows may have been inserted, so that the payloads it brings back are inserted under the same tokens.
 */
export class ConfirmedScripts {
  readonly #redis: Redis
  readonly #replicas: number

  /**
   * `redis` is a producer's connection (`connectProducer`) for this alone: WAIT blocks it, and on a connection that sends
   * commands again it could wait for another server than the one that ran the script.
   */
  constructor(redis: Redis, replicas: number) {
    this.#redis = redis
    this.#replicas = replicas
  }

  /**
   * Runs a script once. WAIT covers the last write of its connection and all before it, so a script that writes nothing is not
   * confirmed. Throws a TransientError if Redis or the replicas do not confirm in time: the script has then run or
   * not, and must be one that may run again.
   */
  async run({ text }: Script, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    const redis = this.#redis
    try {
      // With its text, because EVALSHA could be answered NOSCRIPT, and the script would then run after WAIT.
      const running = redis.eval(text, keys.length, ...keys, ...args)
      const [result, confirmed] = await Promise.all([running, redis.wait(this.#replicas, CONFIRM_WITHIN_MS)])
      if (confirmed >= this.#replicas) return result
      throw new Error(`${confirmed} of ${this.#replicas} replicas have confirmed it in time`)
    } catch (cause) {
      // The next connection may lead to a server that has its replicas.
      if (redis.status === 'ready') redis.disconnect(true)
      throw new TransientError('a script of the queue could not be confirmed', { cause })
    }
  }
}
