import type { Queue } from 'bullmq'
import type { CommitJob } from '../schemas/queues/jobs.ts'
import type { QueueName } from '../schemas/queues/names.ts'
import { JOB_OPTIONS, lanesOf, openQueue } from '../shared/queue/queue.ts'
import type { Queues } from '../shared/queue/queues.ts'

/** BullMQ's priorities begin with 1, and the greatest is 2^21. */
const PRIORITIES = 2_097_150

/** Adds the jobs of replayed payloads, which are in the first queue of their name. */
export class ReplayJobs {
  readonly #connections: Queues
  readonly #queues = new Map<QueueName, Queue<CommitJob>>()

  constructor(connections: Queues) {
    this.#connections = connections
  }

  /**
   * Adds a job to the last lane of its queue, behind the bulk jobs that have waited for longer. If this is not reached, the
   * sweeper of the workers adds the job.
   */
  async add(name: QueueName, jobId: string, data: CommitJob, nowMs: number): Promise<void> {
    let queue = this.#queues.get(name)
    if (queue === undefined) {
      const { redis, keys } = this.#connections.firstOf(name)
      queue = openQueue(redis, keys, lanesOf(name).at(-1) ?? 'express')
      // The connection logs its own errors. Without a listener, BullMQ prints each of them to stderr.
      queue.on('error', () => {})
      this.#queues.set(name, queue)
    }
    const priority = 1 + (Math.floor(nowMs / 1_000) % PRIORITIES)
    await queue.add('commit', data, { ...JOB_OPTIONS, jobId, priority })
  }

  /** Closes the queues, but not their connection. */
  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map(queue => queue.close()))
  }
}
