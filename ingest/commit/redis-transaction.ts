import type { Writable } from 'node:stream'
import { Command, type Redis } from 'ioredis'

/**
 * Sends commands as one transaction, in one write to the socket. Resolves with their replies when Redis has run them
 * all. Every command must be sent before `commands` returns.
 *
 * Does not use ioredis' pipelined `multi()`, which gives every pipeline a method for each of BullMQ's sixty scripts, and
 * joins the bytes of all commands twice. Measured per commit of 32 requests, in CPU time of the edge without HTTP:
 * 190 µs with `multi()` and 90 µs here, or 470 and 215 µs with bodies of 8 KB.
 */
export async function runTransaction(redis: Redis, commands: () => readonly Promise<unknown>[]): Promise<unknown[]> {
  redis.stream.cork()
  let sent: readonly Promise<unknown>[]
  try {
    sent = [redis.multi({ pipeline: false }), ...commands(), redis.exec()]
  } finally {
    redis.stream.uncork()
  }
  const results = (await Promise.all(sent)).at(-1) as Awaited<ReturnType<Redis['exec']>>
  if (results === null) throw new Error('redis discarded the transaction')
  const failed = results.find(([error]) => error !== null)
  if (failed) throw failed[0]
  // All promises but those of MULTI and EXEC have a reply. A command that was sent late ran on its own.
  if (results.length !== sent.length - 2) throw new Error('a command was sent outside of its transaction')
  return results.map(([, reply]) => reply)
}

/** Sends SET without copying the value. ioredis would copy it first, and it may have megabytes. */
export function setInPlace(redis: Redis, key: string, value: Buffer): Promise<unknown> {
  return redis.sendCommand(new SetInPlace(key, value)) as Promise<unknown>
}

class SetInPlace extends Command {
  readonly #head: string
  readonly #value: Buffer

  constructor(key: string, value: Buffer) {
    super('set', [key, value])
    this.#head = `*3\r\n$3\r\nset\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n$${value.length}\r\n`
    this.#value = value
  }

  /** Writes head and value to the socket itself. ioredis then writes the returned line end after them. */
  override toWritable(socket: object): string {
    const stream = socket as Writable
    stream.write(this.#head)
    stream.write(this.#value)
    return '\r\n'
  }
}
