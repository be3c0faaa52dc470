import type { Writable } from 'node:stream'
import { Command, type Redis } from 'ioredis'

/** The reply of a command in a transaction, or its error. */
export type CommandResult = readonly [error: Error | null, reply: unknown]

/**
 * Sends commands as one transaction, in one write to the socket. Resolves with their results when Redis has run the
 * transaction. Every command must be sent before `commands` returns.
 *
 * Does not use ioredis' pipelined `multi()`, which gives every pipeline a method for each of BullMQ's sixty scripts, and
 * joins the bytes of all commands twice. Measured per commit of 32 requests, in CPU time of the edge without HTTP:
 * 190 µs with `multi()` and 90 µs here, or 470 and 215 µs with bodies of 8 KB.
 */
export async function runTransaction(
  redis: Redis,
  commands: () => readonly Promise<unknown>[],
): Promise<readonly CommandResult[]> {
  redis.stream.cork()
  let sent: readonly Promise<unknown>[]
  try {
    sent = [redis.multi({ pipeline: false }), ...commands(), redis.exec()]
  } finally {
    redis.stream.uncork()
  }
  const results = (await Promise.all(sent)).at(-1) as Awaited<ReturnType<Redis['exec']>>
  if (results === null) throw new Error('redis discarded the transaction')
  // All promises but those of MULTI and EXEC have a reply. A command that was sent late ran on its own.
  if (results.length !== sent.length - 2) throw new Error('a command was sent outside of its transaction')
  return results
}

/**
 * Sends SET, with an expiry, without copying the value. ioredis would copy it first, and it may have megabytes.
 */
export function setInPlace(redis: Redis, key: string, value: Buffer, lifetimeMs: number): Promise<unknown> {
  return redis.sendCommand(new SetInPlace(key, value, lifetimeMs)) as Promise<unknown>
}

class SetInPlace extends Command {
  readonly #head: string
  readonly #value: Buffer
  readonly #tail: string

  constructor(key: string, value: Buffer, lifetimeMs: number) {
    const lifetime = String(lifetimeMs)
    super('set', [key, value, 'px', lifetime])
    this.#head = `*5\r\n$3\r\nset\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n$${value.length}\r\n`
    this.#value = value
    this.#tail = `\r\n$2\r\npx\r\n$${lifetime.length}\r\n${lifetime}\r\n`
  }

  /** Writes head and value to the socket itself. ioredis then writes the returned rest after them. */
  override toWritable(socket: object): string {
    const stream = socket as Writable
    stream.write(this.#head)
    stream.write(this.#value)
    return this.#tail
  }
}
