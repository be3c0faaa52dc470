import type { Redis } from 'ioredis'
import type { Problem } from '../../schemas/http/problems.ts'
import type { DurabilitySettings } from '../runtime/config.ts'
import { errorFields } from '../runtime/errors.ts'
import { withDeadline } from '../runtime/lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'
import { scriptFault } from '../runtime/redis/script.ts'
import { type AofSettings, durabilityFault, isReplica } from './durability.ts'

/** The collaborators of a watch. */
interface DurabilityWatchDeps {
  readonly redis: Redis
  /** Name of the Redis in reasons, logs and metrics. */
  readonly store: 'queues' | 'directory'
  readonly logger: Logger
  /** Replaces the connections of the process to this Redis, because their server was demoted. */
  readonly reconnect: () => void
  /** Another reason to acknowledge nothing. */
  readonly alsoRefuse?: (() => Problem | undefined) | undefined
  /** The clock of this process, which is compared with that of Redis. */
  readonly now?: () => number
}

/** Time between two checks while the promise is kept, and while it is not. */
const CHECK_EVERY_MS = 60_000
const CHECK_AGAIN_MS = 1_000
/** Commands of a consumer wait without limit, a check does not. */
const CHECK_WITHIN_MS = 5_000
/** Rows are kept by the time of their receipt, so a clock that is far off could let them expire at once. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000

const NOT_DURABLE: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'nothing is accepted because the server or its store is not ready; send the request again after the delay',
  retryAfterSeconds: 5,
}

/**
 * Follows whether a Redis keeps what it confirms (docs/operate/durability.md#durability). Nothing may be acknowledged while it does
 * not, or while that is unknown: each connection may lead to another server than the one before.
 */
export class DurabilityWatch {
  readonly #deps: DurabilityWatchDeps
  readonly #promise: DurabilitySettings
  readonly #now: () => number
  #fault: string | undefined = NOT_KNOWN
  #isReplica = false
  #clockAheadMs: number | undefined
  #logged: string | undefined
  /** Run id of the server that was checked, and of those that the followed connections lead to while they are open. */
  #checkedRunId: string | undefined
  readonly #followedRunIds = new Map<Redis, string>()
  /** Run id of the server that compiles the scripts of this process. */
  #compiledRunId: string | undefined
  #scriptFault: string | undefined
  #timer: NodeJS.Timeout | undefined
  #checking = false
  #checkedAtMs = Number.NEGATIVE_INFINITY
  #isStopped = false

  constructor(deps: DurabilityWatchDeps, promise: DurabilitySettings) {
    this.#deps = deps
    this.#promise = promise
    this.#now = deps.now ?? Date.now
    deps.redis.on('ready', () => void this.#check())
    deps.redis.on('close', () => {
      this.#fault ??= NOT_KNOWN
      this.#checkedRunId = undefined
    })
    if (deps.redis.status === 'ready') void this.#check()
  }

  /** Why the process is not ready, or undefined. */
  get fault(): string | undefined {
    return this.#fault && `redis of the ${this.#deps.store}: ${this.#fault}`
  }

  /** How far the clock of this process was ahead of that of Redis at the last check, in ms; undefined before the first. */
  get clockAheadMs(): number | undefined {
    return this.#clockAheadMs
  }

  /** Returns INGEST_INFRA_UNAVAILABLE for a request that would be acknowledged, or undefined. */
  refuse(): Problem | undefined {
    return this.#fault === undefined ? this.#deps.alsoRefuse?.() : NOT_DURABLE
  }

  /** Checks soon, because a write was not confirmed: replicas may be missing. */
  recheck(): void {
    if (performance.now() - this.#checkedAtMs >= CHECK_AGAIN_MS) void this.#check()
  }

  /**
   * Compares the server of another connection with the one that was checked, whenever that connection opens. A result is about
   * one server, and a new connection may lead to another one while that of the watch stays where it was. A connection whose
   * server is not known in time is replaced.
   */
  follow(redis: Redis): void {
    // Sent before any write on this connection, and so answered before.
    redis.on('ready', () => {
      redis.info('server').then(
        info => this.#followed(redis, runIdOf(info)),
        error => {
          if (!isAnswer(error) && redis.status === 'ready') redis.disconnect(true)
        },
      )
    })
    redis.on('close', () => this.#followedRunIds.delete(redis))
  }

  /** Ends the checks. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #check(): Promise<void> {
    if (this.#checking || this.#deps.redis.status !== 'ready') return
    this.#checking = true
    this.#checkedAtMs = performance.now()
    clearTimeout(this.#timer)
    let nextMs = CHECK_AGAIN_MS
    try {
      await this.#read()
      if (this.#fault === undefined) nextMs = CHECK_EVERY_MS
    } catch (error) {
      const { logger, store } = this.#deps
      logger.debug({ store, ...errorFields(error) }, 'the durability of redis could not be checked')
      if (!isAnswer(error)) this.#leaveSilent()
    }
    this.#checking = false
    if (!this.#isStopped) this.#timer = setTimeout(() => this.#checkAgain(), nextMs).unref()
  }

  /** A wrong server is left at the second look, so that connections are not replaced without pause while addresses lead to it. */
  #checkAgain(): void {
    if (!this.#isReplica && !this.#isElsewhere()) return void this.#check()
    this.#isReplica = false
    this.#followedRunIds.clear()
    this.#deps.reconnect()
  }

  /** Nothing is known of a server that does not answer, and its address may lead to another one by now. */
  #leaveSilent(): void {
    this.#fault = NO_ANSWER
    this.#report()
    if (this.#deps.redis.status === 'ready') this.#deps.redis.disconnect(true)
  }

  async #read(): Promise<void> {
    const { redis } = this.#deps
    const read = Promise.all([redis.info(), redis.time(), readAofSettings(redis)])
    const [info, time, aof] = await withDeadline(read, CHECK_WITHIN_MS, 'redis did not answer in time')
    const runId = runIdOf(info)
    if (runId === undefined || runId !== this.#compiledRunId) {
      this.#scriptFault = await withDeadline(scriptFault(redis), CHECK_WITHIN_MS, 'redis did not answer in time')
      this.#compiledRunId = this.#scriptFault === undefined ? runId : undefined
    }
    this.#checkedRunId = runId
    const isElsewhere = this.#isElsewhere()
    this.#isReplica = isReplica(info)
    const clockFault = this.#clockFault(time)
    this.#fault = isElsewhere
      ? ELSEWHERE
      : (durabilityFault(info, aof, this.#promise) ?? this.#scriptFault ?? clockFault)
    this.#report()
  }

  #followed(redis: Redis, runId: string | undefined): void {
    if (runId !== undefined) this.#followedRunIds.set(redis, runId)
    if (this.#isElsewhere()) this.#fault = ELSEWHERE
    // Checked at once also when the last connection that led elsewhere is back.
    if (this.#fault === ELSEWHERE) void this.#check()
  }

  /** Returns whether a followed connection leads to another server than the one that was checked. */
  #isElsewhere(): boolean {
    const checked = this.#checkedRunId
    return checked !== undefined && [...this.#followedRunIds.values()].some(runId => runId !== checked)
  }

  #clockFault([seconds, micros]: readonly (number | string)[]): string | undefined {
    const aheadMs = this.#now() - (Number(seconds) * 1_000 + Number(micros) / 1_000)
    this.#clockAheadMs = aheadMs
    if (this.#deps.store !== 'queues') return undefined
    if (Math.abs(aheadMs) <= MAX_CLOCK_DIFFERENCE_MS) return undefined
    const side = aheadMs > 0 ? 'ahead of' : 'behind'
    return `the clock of this process is ${Math.round(Math.abs(aheadMs) / 1_000)} s ${side} its clock`
  }

  #report(): void {
    if (this.#logged === this.#fault) return
    const { logger, store } = this.#deps
    if (this.#fault === undefined) logger.info({ store }, 'redis keeps what it confirms')
    else logger.error({ store, reason: this.#fault }, 'redis cannot be relied on')
    this.#logged = this.#fault
  }
}

const NOT_KNOWN = 'its durability is not known yet'
const NO_ANSWER = 'not durable: it does not answer'
const ELSEWHERE = 'its address leads to another server than before'

/** Returns the id that a server has until it is started again, from the reply of INFO. */
function runIdOf(info: string): string | undefined {
  return /^run_id:(\w+)/m.exec(info)?.[1]
}

/** Returns whether Redis has answered, with an error. */
function isAnswer(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

/** Reads the settings that INFO does not have. Returns undefined if Redis refuses the command. Throws if it does not answer. */
export async function readAofSettings(redis: Redis): Promise<AofSettings> {
  let reply: readonly string[]
  try {
    reply = (await redis.config('GET', 'appendfsync', 'no-appendfsync-on-rewrite')) as string[]
  } catch (error) {
    if (isAnswer(error)) return undefined
    throw error
  }
  const settings = new Map<string, string>()
  for (let i = 0; i < reply.length; i += 2) settings.set(reply[i] as string, reply[i + 1] as string)
  return settings
}
