import { errorFields } from '../../runtime/errors.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { QueueConnections } from '../queues.ts'

/** Time between two reads of the registry. Payloads in a new partition wait for a worker this much longer at most. */
const READ_EVERY_MS = 1_000

/** The partitions that a process follows. */
export interface PartitionFeed {
  readonly current: readonly number[]
  /** Calls the listener whenever the partitions have changed. Returns a function that ends this. */
  onChange(listener: () => void): () => void
}

/** Collaborators of {@link FollowedPartitions}. */
interface FollowedPartitionsDeps {
  readonly queues: Pick<QueueConnections, 'partitions' | 'first' | 'common'>
  readonly logger: Logger
}

/** Follows the partitions that edges have registered, until it is stopped. */
export class FollowedPartitions implements PartitionFeed {
  readonly #deps: FollowedPartitionsDeps
  readonly #listeners = new Set<() => void>()
  readonly #timer: NodeJS.Timeout
  #current: readonly number[]
  /** Partitions that this process registers again and again. */
  #registered: readonly number[] = []
  #isReading = false

  constructor(deps: FollowedPartitionsDeps) {
    this.#deps = deps
    this.#current = [deps.queues.first]
    this.#timer = setInterval(() => void this.read(), READ_EVERY_MS).unref()
    void this.read()
  }

  get current(): readonly number[] {
    return this.#current
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
      this.#take((await this.#deps.queues.partitions()).numbers)
    } catch (error) {
      this.#deps.logger.debug(errorFields(error), 'the partitions of the queues could not be read')
    } finally {
      this.#isReading = false
    }
  }

  /** Takes partitions that this process has just registered, which the next read would find too late. */
  add(registered: readonly number[]): void {
    this.#registered = registered
    this.#take(this.#current)
  }

  /** Ends the reads. */
  stop(): void {
    clearInterval(this.#timer)
  }

  #take(numbers: readonly number[]): void {
    // A read may have begun before the registration.
    const found = [...new Set([...numbers, ...this.#registered])].sort((a, b) => a - b)
    if (found.join() === this.#current.join()) return
    this.#current = found
    this.#deps.logger.info({ partitions: found }, 'partitions of the queues')
    for (const listener of this.#listeners) listener()
  }
}

/** A feed of partitions that never change. */
export function fixedPartitions(partitions: readonly number[]): PartitionFeed {
  return { current: partitions, onChange: () => () => {} }
}
