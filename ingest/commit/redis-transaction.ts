import { Command, type Redis } from 'ioredis'
import { respCommand } from './resp.ts'

/** The commands of a transaction in RESP, without MULTI and EXEC. */
export interface Transaction {
  /** Their number. */
  readonly commands: number
  readonly head: string
  /** Bytes between head and tail, which are not copied. They must not change until the transaction has ended. */
  readonly value?: Buffer
  readonly tail: string
}

/** The replicas that must have a transaction. */
export interface ReplicaWait {
  readonly replicas: number
  /** How long Redis waits for them. */
  readonly timeoutMs: number
}

/** The bounds of a transaction, and additions to its commands. */
interface TransactionOptions {
  /** A transaction that has not ended after this time is rejected. Its connection must be replaced then. */
  readonly timeoutMs: number
  /** Sends one more command with ioredis before it returns. */
  readonly last?: (() => Promise<unknown>) | undefined
  readonly wait?: ReplicaWait | undefined
}

/** A transaction whose replies have not all arrived. */
interface SentTransaction {
  /** Number of the replies of its commands. */
  readonly expected: number
  readonly wait: ReplicaWait | undefined
  readonly resolve: (results: readonly unknown[]) => void
  readonly reject: (error: Error) => void
  timer: NodeJS.Timeout | undefined
  reply: readonly unknown[] | null
  isSettled: boolean
}

const MULTI = respCommand('MULTI')
const EXEC = respCommand('EXEC')

/**
 * Sends transactions over a connection of ioredis, each in one write to the socket, and takes their replies by position. ioredis
 * keeps what a connection needs: address, login, reconnecting, the parser and the order of replies. It gets neither the words nor
 * a `Command` for each command, because with those come a promise, a timer and a trace. Commands of others may be sent on the
 * same connection. It must be a producer's, which sends nothing twice.
 */
export class RedisTransactions {
  readonly #redis: Redis
  /** In the order in which Redis answers. */
  readonly #sent: SentTransaction[] = []
  readonly #onError = (error: Error) => this.#reject(error)
  readonly #queuedReply = new ReplySlot(() => {}, this.#onError)
  readonly #execReply = new ReplySlot(
    reply => this.#takeExec(reply as readonly unknown[] | null),
    error => {
      this.#reject(error)
      this.#takeExec(null)
    },
  )
  readonly #waitReply = new ReplySlot(
    confirmed => this.#takeWait(confirmed as number),
    error => {
      this.#reject(error)
      this.#end()
    },
  )

  constructor(redis: Redis) {
    this.#redis = redis
  }

  /**
   * Sends a transaction before it returns. Resolves with the replies of its commands when Redis has run it, and with `wait` when
   * these replicas have it too. The reply of a command that failed is an Error. Rejects if Redis has not run it, or if a
   * confirmation is missing.
   */
  run({ commands, head, value, tail }: Transaction, options: TransactionOptions): Promise<readonly unknown[]> {
    const { stream, status } = this.#redis
    if (status !== 'ready' || !stream.writable) return Promise.reject(new Error('redis is not connected'))
    const { last, wait } = options
    const { promise, resolve, reject } = Promise.withResolvers<readonly unknown[]>()
    const expected = last === undefined ? commands : commands + 1
    const sent: SentTransaction = { expected, wait, resolve, reject, timer: undefined, reply: null, isSettled: false }
    sent.timer = setTimeout(expire, options.timeoutMs, sent)
    this.#sent.push(sent)
    const end = wait === undefined ? EXEC : `${EXEC}${respCommand('WAIT', wait.replicas, wait.timeoutMs)}`
    stream.cork()
    try {
      for (let i = 0; i <= commands; i++) this.#redis.sendCommand(this.#queuedReply, ELSEWHERE)
      stream.write(MULTI + head)
      if (value !== undefined) stream.write(value)
      if (last === undefined) stream.write(tail + end)
      else {
        stream.write(tail)
        // Its rejection is the one of EXEC.
        last().catch(() => {})
        stream.write(end)
      }
      this.#redis.sendCommand(this.#execReply, ELSEWHERE)
      // In the same write: WAIT is about the writes of its own connection, and could be sent on the next one later.
      if (wait !== undefined) this.#redis.sendCommand(this.#waitReply, ELSEWHERE)
    } finally {
      stream.uncork()
    }
    return promise
  }

  #takeExec(reply: readonly unknown[] | null): void {
    const sent = this.#sent[0] as SentTransaction
    sent.reply = reply
    if (sent.wait === undefined) this.#end()
  }

  #takeWait(confirmed: number): void {
    const [{ wait }] = this.#sent as [SentTransaction]
    const { replicas } = wait as ReplicaWait
    if (confirmed < replicas) this.#reject(new Error(`${confirmed} of ${replicas} replicas confirmed in time`))
    this.#end()
  }

  /** Rejects the transaction whose replies are arriving, unless that was done. Further replies of it may follow. */
  #reject(error: Error): void {
    settle(this.#sent[0] as SentTransaction, error)
  }

  #end(): void {
    const sent = this.#sent.shift() as SentTransaction
    const { reply, expected } = sent
    if (reply === null) settle(sent, new Error('redis discarded the transaction'))
    else if (reply.length !== expected) settle(sent, new Error('a command was sent outside of its transaction'))
    else settle(sent, undefined)
  }
}

function settle(sent: SentTransaction, error: Error | undefined): void {
  if (sent.isSettled) return
  sent.isSettled = true
  clearTimeout(sent.timer)
  if (error !== undefined) sent.reject(error)
  else sent.resolve(sent.reply as readonly unknown[])
}

function expire(sent: SentTransaction): void {
  settle(sent, new Error('redis did not confirm in time'))
}

/**
 * An entry of the queue of replies of ioredis, which is added again for each reply. ioredis rejects it when the connection is
 * lost.
 */
class ReplySlot extends Command {
  constructor(onReply: (reply: unknown) => void, onError: (error: Error) => void) {
    super('multi')
    // A trace would wait for the promise, which is never settled.
    this.isTraced = true
    this.resolve = onReply
    this.reject = onError
  }

  /** Sets no timer, because a transaction has one of its own. */
  override setTimeout(): void {}

  override toWritable(): string {
    return ''
  }
}

/** The stream that ioredis writes a slot to, whose bytes are written with those of the transaction. */
const ELSEWHERE = { write: () => true } as unknown as Parameters<Redis['sendCommand']>[1]
