import { createIORedisClient, Job, type Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { JOB_OPTIONS, openQueue } from '../../shared/queue/queue.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { runTransaction } from './redis-transaction.ts'

/** Adds jobs to one queue, each in one transaction with the data that it refers to. Never sends a job twice. */
export interface JobWriter {
  /** False while Redis is unavailable: a write would fail. */
  readonly isUsable: boolean
  /**
   * Sends `commands` and the job before it returns. Resolves with the replies of the commands once Redis has run and
   * fsynced all of them.
   */
  write(jobId: string, job: CommitJob, commands: () => readonly Promise<unknown>[]): Promise<unknown[]>
  /**
   * Replaces the connection. A stalled connection would delay the next writes by the full timeout, while a new one
   * fails at once as long as Redis is unavailable.
   */
  reconnect(): void
}

/** Creates the job writer of a queue. `redis` is a producer's connection (`connectProducer`). */
export function createJobWriter(deps: { redis: Redis; queue: QueueName; logger: Logger }): JobWriter {
  const { redis, logger } = deps
  const bull = createIORedisClient(redis)
  let queue: Queue<CommitJob> | undefined
  let usable = false

  if (redis.status === 'ready') open()
  redis.on('ready', open)
  redis.on('close', () => {
    usable = false
  })

  /** Has BullMQ load its scripts, once. If the connection is lost meanwhile, the next "ready" starts it again. */
  function open(): void {
    usable = queue !== undefined
    if (usable) return
    const opened = openQueue(redis, deps.queue, 'express')
    opened.on('error', error => logger.debug(errorFields(error), 'queue error'))
    opened.waitUntilReady().then(
      () => {
        queue = opened
        usable = redis.status === 'ready'
      },
      () => void opened.close(),
    )
  }

  return {
    get isUsable() {
      return usable
    },
    async write(jobId, data, commands) {
      if (queue === undefined) throw new TransientError('the queue is not open yet')
      const job = new Job<CommitJob>(queue, 'commit', data, JOB_OPTIONS, jobId)
      return runTransaction(redis, () => [...commands(), job.addJob(bull)])
    },
    reconnect() {
      if (usable) redis.disconnect(true)
      usable = false
    },
  }
}
