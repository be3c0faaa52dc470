import type { QueueName } from '../../../schemas/queues/names.ts'
import { errorFields } from '../../runtime/errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Queues, RedisQueue } from '../queues.ts'
import type { FollowedQueues } from './queue-feed.ts'
import { REGISTERED_FOR_MS, type RegisteredPartition, registerPartitions } from './registry.ts'

/** Time between two registrations. */
const REGISTER_EVERY_MS = 10_000
const REGISTER_AGAIN_MS = 1_000

/**
 * An edge that could not register its partitions for this long uses the first one only. The others are forgotten twice as long
 * after the last registration at the earliest, whatever clocks and commits are late.
 */
const USED_FOR_MS = REGISTERED_FOR_MS / 2

/** A queue that a process writes to. */
export interface UsedQueue {
  readonly queue: RedisQueue
  /** Nothing may be accepted before this time by the clock of the queue's server, in Unix ms. */
  readonly sinceMs: number
  /** Whether this process may write to the queue at this time. */
  readonly mayUse: () => boolean
}

type UsedPartitions = readonly Pick<RegisteredPartition, 'partition' | 'sinceMs'>[]

/** Collaborators of {@link UsedQueues}. */
interface UsedQueuesDeps {
  readonly queues: Queues
  /** Admission follows these, and counts a queue before anything is in it. */
  readonly followed: Pick<FollowedQueues, 'add'>
  readonly logger: Logger
  readonly config: { readonly QUEUE_PARTITIONS: number }
}

/**
 * The queues that an edge writes to. It registers their partitions in Redis again and again, so that all other processes know them
 * before anything is in them, and until nothing can be in them any more.
 */
export class UsedQueues {
  readonly #deps: UsedQueuesDeps
  #partitions: UsedPartitions
  readonly #byName = new Map<QueueName, readonly UsedQueue[]>()
  #registeredAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #isRegistering = false
  #isStopped = false

  constructor(deps: UsedQueuesDeps) {
    this.#deps = deps
    this.#partitions = [{ partition: deps.queues.first, sinceMs: 0 }]
    deps.queues.common.on('ready', () => void this.#register())
    void this.#register()
  }

  /** Returns the equal queues of a name: another list whenever they have changed. */
  of(name: QueueName): readonly UsedQueue[] {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const used = this.#partitions.map(({ partition, sinceMs }) => ({
      queue: this.#deps.queues.at(name, partition),
      sinceMs,
      mayUse: () => partition === this.#deps.queues.first || performance.now() - this.#registeredAtMs < USED_FOR_MS,
    }))
    this.#byName.set(name, used)
    return used
  }

  /** Ends the registrations. Others know the partitions for an hour. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #register(): Promise<void> {
    if (this.#isRegistering || this.#isStopped) return
    this.#isRegistering = true
    clearTimeout(this.#timer)
    const { queues, config, logger } = this.#deps
    const count = config.QUEUE_PARTITIONS
    let nextMs = REGISTER_AGAIN_MS
    try {
      if (queues.common.status === 'ready') {
        // The time before, because the registration lasts from when Redis has run it.
        const startedAtMs = performance.now()
        const { first } = queues
        const { partitions } = await registerPartitions(queues.common, { first, count })
        this.#registeredAtMs = startedAtMs
        nextMs = REGISTER_EVERY_MS
        this.#take(partitions.filter(({ partition }) => partition >= first && partition < first + count))
      }
    } catch (error) {
      logger.debug(errorFields(error), 'the partitions of the queues could not be registered')
    }
    this.#isRegistering = false
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#register(), nextMs).unref()
  }

  #take(partitions: readonly RegisteredPartition[]): void {
    const idOf = (all: UsedPartitions) => all.map(({ partition, sinceMs }) => `${partition} ${sinceMs}`).join()
    if (idOf(partitions) === idOf(this.#partitions)) return
    this.#deps.followed.add(partitions.map(({ partition }) => partition))
    this.#partitions = partitions
    this.#byName.clear()
  }
}
