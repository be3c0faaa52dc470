import type { Redis } from 'ioredis'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import type { RedisClock } from '../admission/redis-clock.ts'
import { OpenJob, type OpenJobLimits } from './open-job.ts'
import { PayloadWriter, type PayloadWriterDeps } from './payload-writer.ts'

/** One of the equal queues of a name, as a lane writes to it. */
export interface QueueTarget {
  readonly queue: RedisQueue
  /** A producer's connection to its server, which the lane has for itself. */
  readonly redis: Redis
  /** The clock of this server. */
  readonly clock: RedisClock
  /** Whether the queue is registered, and its server keeps what it confirms. */
  readonly mayUse: () => boolean
}

/** The equal queues that a lane writes to. The list is another one whenever they have changed. */
export interface QueueTargets {
  readonly current: readonly QueueTarget[]
}

/** The collaborators of the writers of a lane. */
interface LaneWritersDeps extends Omit<PayloadWriterDeps, 'redis' | 'clock' | 'queue'> {
  readonly targets: QueueTargets
  readonly now: () => number
}

/** Writes the commits of one lane to one queue. */
export class QueueWriter {
  readonly target: QueueTarget
  readonly commit: PayloadWriter
  readonly openJob: OpenJob

  constructor(target: QueueTarget, deps: Omit<LaneWritersDeps, 'targets'>, limits: OpenJobLimits) {
    this.target = target
    this.commit = new PayloadWriter({ ...deps, ...target })
    this.openJob = new OpenJob(job => this.commit.addJob(job), limits, deps.now)
    // The next connection may lead to another server, on which a worker has read the payload.
    target.redis.on('close', () => this.openJob.close())
  }

  /** False while a write would fail. */
  get isUsable(): boolean {
    return this.commit.isUsable && this.target.mayUse()
  }
}

/**
 * How long commits go to the same queue before they go to the next one. Small commits join the job of the one before, so a
 * change after each commit would make many jobs.
 */
const SLICE_MS = 50

/** The writers of a lane, one for each of the equal queues. */
export class LaneWriters {
  readonly #deps: LaneWritersDeps
  readonly #limits: OpenJobLimits
  #targets: readonly QueueTarget[] = []
  #all: readonly QueueWriter[] = []

  constructor(deps: LaneWritersDeps, limits: OpenJobLimits) {
    this.#deps = deps
    this.#limits = limits
    this.#follow()
  }

  /** The writers of all queues. */
  get all(): readonly QueueWriter[] {
    if (this.#deps.targets.current !== this.#targets) this.#follow()
    return this.#all
  }

  /** The writer whose turn it is: that of this slice of time, or the next one that is usable. Undefined if none is usable. */
  get current(): QueueWriter | undefined {
    const { all } = this
    const first = all.length === 1 ? 0 : Math.floor(performance.now() / SLICE_MS)
    for (let i = 0; i < all.length; i++) {
      const writer = all[(first + i) % all.length]
      if (writer?.isUsable) return writer
    }
    return undefined
  }

  #follow(): void {
    this.#targets = this.#deps.targets.current
    const known = new Map(this.#all.map(writer => [writer.target, writer]))
    this.#all = this.#targets.map(target => known.get(target) ?? new QueueWriter(target, this.#deps, this.#limits))
  }
}
