import type { Writable } from 'node:stream'
import { Command, type Redis } from 'ioredis'

/**
 * Sends commands as one transaction, in one write to the socket; resolves with their replies when Redis has run
 * them all. Every command must be sent before `commands` returns.
 *
 * Not ioredis' pipelined `multi()`: that gives every pipeline a method for each of BullMQ's sixty scripts, and joins the
 * bytes of all commands twice. Measured per commit of 32 requests, CPU of the edge without HTTP: 190 µs so, 90 µs here;
 * with 8 KB bodies 470 and 215 µs.
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
  if (results === null) throw new Error('the transaction was discarded')
  const failed = results.find(([error]) => error !== null)
  if (failed) throw failed[0]
  // MULTI, EXEC and what is between them: one that was sent late has run by itself.
  if (results.length !== sent.length - 2) throw new Error('a command was sent outside of its transaction')
  return results.map(([, reply]) => reply)
}

/** SET of a value that is written from where it stands; ioredis would copy it first, and it may be megabytes. */
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

  /** ioredis writes what this returns to the same socket. */
  override toWritable(socket: object): string {
    const stream = socket as Writable
    stream.write(this.#head)
    stream.write(this.#value)
    return '\r\n'
  }
}
