import { errorFields } from '../../runtime/errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Queues } from '../queues.ts'
import { REGISTERED_FOR_MS, type RegisteredPartition, registerPartitions } from './registry.ts'

/** Time between two registrations. */
const REGISTER_EVERY_MS = 10_000
const REGISTER_AGAIN_MS = 1_000

/**
 * An edge that could not register its partitions for this long uses the first one only. The others are forgotten twice as long
 * after the last registration at the earliest, whatever clocks and commits are late.
 */
const USED_FOR_MS = REGISTERED_FOR_MS / 2

/** Collaborators of {@link UsedPartitions}. */
interface UsedPartitionsDeps {
  readonly queues: Pick<Queues, 'common' | 'first'>
  readonly logger: Logger
  /** The number of partitions that this process writes to. */
  readonly count: number
  /** Called when the partitions have changed. */
  readonly onChange: (partitions: readonly RegisteredPartition[]) => void
  readonly now?: () => number
}

/**
 * The partitions that an edge writes to. It registers them in Redis again and again, so that all other processes know them
 * before anything is in them, and until nothing can be in them any more.
 */
export class UsedPartitions {
  readonly #deps: UsedPartitionsDeps
  readonly #now: () => number
  #registeredAtMs = Number.NEGATIVE_INFINITY
  #known = ''
  #timer: NodeJS.Timeout | undefined
  #isRegistering = false
  #isStopped = false

  constructor(deps: UsedPartitionsDeps) {
    this.#deps = deps
    this.#now = deps.now ?? performance.now.bind(performance)
    deps.queues.common.on('ready', () => void this.#register())
    void this.#register()
  }

  /** Whether this process may write to a partition at this time. */
  mayUse(partition: number): boolean {
    const { first } = this.#deps.queues
    return partition === first || this.#now() - this.#registeredAtMs < USED_FOR_MS
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
    const { queues, count, logger, onChange } = this.#deps
    let nextMs = REGISTER_AGAIN_MS
    try {
      if (queues.common.status === 'ready') {
        // The time before, because the registration lasts from when Redis has run it.
        const startedAtMs = this.#now()
        const { first } = queues
        const { partitions } = await registerPartitions(queues.common, { first, count })
        this.#registeredAtMs = startedAtMs
        nextMs = REGISTER_EVERY_MS
        const own = partitions.filter(({ partition }) => partition >= first && partition < first + count)
        const known = JSON.stringify(own.map(({ partition, sinceMs }) => [partition, sinceMs]))
        if (known !== this.#known) onChange(own)
        this.#known = known
      }
    } catch (error) {
      logger.debug(errorFields(error), 'the partitions of the queues could not be registered')
    }
    this.#isRegistering = false
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#register(), nextMs).unref()
  }
}
