import type { QueueName } from '../../../schemas/queues/names.ts'
import { errorFields } from '../../runtime/errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { QueueList, Queues, RedisQueue } from '../queues.ts'

/** Time between two reads of the registry. Payloads in a new queue wait for a worker this much longer at most. */
const READ_EVERY_MS = 1_000

/** The queues that a process follows. */
export interface QueueFeed extends QueueList {
  /** Calls the listener whenever the queues have changed. Returns a function that ends this. */
  onChange(listener: () => void): () => void
}

/** Collaborators of {@link FollowedQueues}. */
interface FollowedQueuesDeps {
  readonly queues: Pick<Queues, 'read' | 'ofNumbers' | 'first' | 'common'>
  readonly logger: Logger
}

/** Follows the queues that edges have registered, until it is stopped. */
export class FollowedQueues implements QueueFeed {
  readonly #deps: FollowedQueuesDeps
  readonly #listeners = new Set<() => void>()
  readonly #timer: NodeJS.Timeout
  #numbers: readonly number[]
  #list: QueueList
  /** Numbers that this process registers again and again. */
  #registered: readonly number[] = []
  #isReading = false

  constructor(deps: FollowedQueuesDeps) {
    this.#deps = deps
    this.#numbers = [deps.queues.first]
    this.#list = deps.queues.ofNumbers(this.#numbers)
    this.#timer = setInterval(() => void this.read(), READ_EVERY_MS).unref()
    void this.read()
  }

  get all(): readonly RedisQueue[] {
    return this.#list.all
  }

  of(name: QueueName): readonly RedisQueue[] {
    return this.#list.of(name)
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Reads the registry once. A read that fails changes nothing. */
  async read(): Promise<void> {
    if (this.#isReading || this.#deps.queues.common.status !== 'ready') return
    this.#isReading = true
    try {
      this.#take((await this.#deps.queues.read()).numbers)
    } catch (error) {
      this.#deps.logger.debug(errorFields(error), 'the list of queues could not be read')
    } finally {
      this.#isReading = false
    }
  }

  /** Takes numbers that this process has just registered, which the next read would find too late. */
  add(registered: readonly number[]): void {
    this.#registered = registered
    this.#take(this.#numbers)
  }

  /** Ends the reads. */
  stop(): void {
    clearInterval(this.#timer)
  }

  #take(numbers: readonly number[]): void {
    // A read may have begun before the registration.
    const found = [...new Set([...numbers, ...this.#registered])].sort((a, b) => a - b)
    if (found.join() === this.#numbers.join()) return
    this.#numbers = found
    this.#list = this.#deps.queues.ofNumbers(found)
    this.#deps.logger.info({ numbers: found }, 'numbers of the queues')
    for (const listener of this.#listeners) listener()
  }
}
