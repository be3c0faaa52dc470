import type { Redis } from 'ioredis'
import type { RedisClock } from '../admission/redis-clock.ts'
import { FencedCommit, type FencedCommitDeps } from './fenced-commit.ts'
import { OpenJob, type OpenJobLimits } from './open-job.ts'

/** A partition that this process may write to. */
export interface PartitionTarget {
  readonly partition: number
  /** A producer's connection to its server. Partitions of one server may share it. */
  readonly redis: Redis
  /** The clock of this server. */
  readonly clock: RedisClock
  /** Returns the name of the server. Commits to one server are not in flight at the same time. */
  readonly node: () => string
  /** Whether the partition is registered, and its server keeps what it confirms. */
  readonly mayUse: () => boolean
}

/** The partitions that a lane writes to. The list is another one whenever they have changed. */
export interface PartitionTargets {
  readonly current: readonly PartitionTarget[]
}

/** The collaborators of the writers of a lane. */
interface PartitionTurnsDeps extends Omit<FencedCommitDeps, 'redis' | 'clock' | 'partition'> {
  readonly targets: PartitionTargets
  readonly now?: () => number
}

/** Writes the commits of one lane to one partition. */
export class PartitionWriter {
  readonly target: PartitionTarget
  readonly commit: FencedCommit
  readonly openJob: OpenJob

  constructor(target: PartitionTarget, deps: Omit<PartitionTurnsDeps, 'targets'>, limits: OpenJobLimits) {
    this.target = target
    this.commit = new FencedCommit({ ...deps, ...target })
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
 * How long commits of a lane go to the same partition, before they go to the next one. Small commits join the job of the one
 * before, so a change after each commit would make many jobs.
 */
const SLICE_MS = 50

/** The writers of a lane, which take turns. One commit to each server is in flight. */
export class PartitionTurns {
  readonly #deps: PartitionTurnsDeps
  readonly #limits: OpenJobLimits
  readonly #busy = new Set<string>()
  #targets: readonly PartitionTarget[] = []
  #writers: readonly PartitionWriter[] = []
  #at = 0
  #since = 0

  constructor(deps: PartitionTurnsDeps, limits: OpenJobLimits) {
    this.#deps = deps
    this.#limits = limits
    this.#follow()
  }

  /** The writers of all partitions. */
  get writers(): readonly PartitionWriter[] {
    if (this.#deps.targets.current !== this.#targets) this.#follow()
    return this.#writers
  }

  /** False while no partition is usable. */
  get isUsable(): boolean {
    for (const writer of this.writers) if (writer.isUsable) return true
    return false
  }

  /** Returns a writer and occupies its server, or undefined if no server is free. */
  take(): PartitionTurn | undefined {
    const { writers } = this
    const now = performance.now()
    const isOver = now - this.#since >= SLICE_MS
    const first = isOver ? this.#at + 1 : this.#at
    for (let i = 0; i < writers.length; i++) {
      const at = (first + i) % writers.length
      const writer = writers[at] as PartitionWriter
      if (!writer.isUsable) continue
      const node = writer.target.node()
      if (this.#busy.has(node)) continue
      if (isOver || at !== this.#at) this.#since = now
      this.#at = at
      this.#busy.add(node)
      return { writer, node }
    }
    return undefined
  }

  /** Gives a server back and occupies the next. Without a usable partition, the next group waits for that of this turn. */
  next(turn: PartitionTurn): PartitionTurn {
    this.giveBack(turn)
    const next = this.take()
    if (next !== undefined) return next
    this.#busy.add(turn.node)
    return turn
  }

  /** Gives a server back. */
  giveBack({ node }: PartitionTurn): void {
    this.#busy.delete(node)
  }

  #follow(): void {
    this.#targets = this.#deps.targets.current
    const known = new Map(this.#writers.map(writer => [writer.target, writer]))
    this.#writers = this.#targets.map(
      target => known.get(target) ?? new PartitionWriter(target, this.#deps, this.#limits),
    )
  }
}

/** A commit to one partition. */
export interface PartitionTurn {
  readonly writer: PartitionWriter
  readonly node: string
}
