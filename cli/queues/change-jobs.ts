import { Job, type Queue } from 'bullmq'
import { type CommitJob, commitJobSchema } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { JOB_OPTIONS } from '../../shared/queue/queue.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { findJob, type JobPlace, openBull, type QueueLane } from './find-jobs.ts'

/** Outcome of a change of one job, with a text about it. A job is left as it is unless the change is `done`. */
export interface Change {
  readonly id: string
  readonly outcome: 'done' | 'not_found' | 'refused'
  readonly text: string
}

/** Changes one job of a lane that is open in BullMQ. Returns the text of the change. Throws a {@link Refusal}. */
type ChangeJob = (place: JobPlace, bull: Queue<CommitJob>) => Promise<string>

/** Why a job is left as it is. */
class Refusal extends Error {}

/** Jobs that are changed at the same time. */
const CONCURRENCY = 16

const RETRY_STUCK = queueScript('retry-stuck')

/** Applies a change to jobs, each by itself. Returns what became of them, in order. */
export async function changeJobs(
  lanes: readonly QueueLane[],
  ids: readonly string[],
  change: ChangeJob,
): Promise<Change[]> {
  const changes: Change[] = new Array(ids.length)
  const opened = new Map<string, Queue<CommitJob>>()
  const open = (place: JobPlace) => {
    const name = place.queue.keys.waiting(place.lane)
    const bull = opened.get(name) ?? openBull(place)
    opened.set(name, bull)
    return bull
  }
  try {
    await forEachConcurrently(ids, { concurrency: CONCURRENCY, stopOnFailure: true }, async (id, i) => {
      const place = await findJob(lanes, id)
      changes[i] = place === undefined ? { id, ...NOT_FOUND } : await changeJob(place, open(place), change)
    })
  } finally {
    for (const bull of opened.values()) await bull.close()
  }
  return changes
}

const NOT_FOUND = { outcome: 'not_found', text: 'there is no such job: it is done, or was never added' } as const

async function changeJob(place: JobPlace, bull: Queue<CommitJob>, change: ChangeJob): Promise<Change> {
  const { id } = place
  try {
    return { id, outcome: 'done', text: await change(place, bull) }
  } catch (error) {
    if (error instanceof Refusal) return { id, outcome: 'refused', text: error.message }
    if (isOfAnotherState(error))
      return { id, outcome: 'refused', text: 'its state has changed meanwhile: look at it again' }
    throw error
  }
}

/** BullMQ has found the job in another state, or not at all. Its errors of this kind have a negative code. */
function isOfAnotherState(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && error.code < 0
}

/** Has a worker take a job next. */
export async function retryJob(place: JobPlace, bull: Queue<CommitJob>): Promise<string> {
  const { queue, lane, id, state } = place
  const job = jobOf(bull, id)
  if (state === 'failed') await job.retry('failed')
  else if (state === 'delayed') await job.promote()
  else if (state === 'stuck') {
    const { keys, redis } = queue
    const ofLane = [keys.lock, keys.active, keys.waiting, keys.job, keys.settings, keys.marker]
    await RETRY_STUCK.run(
      redis,
      ofLane.map(key => key(lane, id)),
      [id],
    )
  } else throw new Refusal(state === 'active' ? 'a worker has it in progress' : 'it waits for a worker already')
  return 'a worker takes it next'
}

/** Queues whose requests are dead letters already. */
const LETTER_QUEUES: readonly QueueName[] = ['dead-letters', 'dead-letter-index']

/**
 * Returns a change that has the worker which takes a job next make dead letters of its requests, without decoding them. So
 * letters, log and receipts are written as for any refused request, and the job keeps its payload until they are.
 */
export function setJobAside(reason: string): ChangeJob {
  return async (place, bull) => {
    const { queue, lane, id, state } = place
    const { redis, keys } = queue
    if (LETTER_QUEUES.includes(queue.name)) throw new Refusal('its requests are dead letters already')
    const bytes = await redis.strlen(keys.payload(id))
    if (bytes === 0) throw new Refusal(`it has no payload, so there is nothing to keep: "penstock queues remove"`)
    const jobsOfBatch = await jobsOfItsBatch(place)
    if (jobsOfBatch > 1) {
      throw new Refusal(
        `its rows may be stored with those of ${jobsOfBatch - 1} other jobs: its batch is finished first`,
      )
    }
    // Requests that arrive now take another job.
    await redis.srem(keys.open, id)
    const known = commitJobSchema.safeParse(parseJson((await redis.hget(keys.job(lane, id), 'data')) ?? ''))
    const job = jobOf(bull, id)
    await job.updateData({ ...(known.data ?? { payloads: 1, bytes }), setAside: reason })
    if (state === 'active')
      return 'a worker has it in progress: if this attempt fails, its requests become dead letters'
    if (state !== 'waiting') await retryJob(place, bull)
    return 'its requests become dead letters when a worker takes it'
  }
}

/** Returns how many jobs the named batch of a job has; 0 if the job is in none. */
async function jobsOfItsBatch({ queue: { redis, keys }, id }: JobPlace): Promise<number> {
  const batchId = await redis.hget(keys.batchOf, id)
  const record = batchId === null ? null : await redis.hget(keys.batches, batchId)
  const parsed =
    record === null ? undefined : (parseJson(record) as { readonly jobIds?: readonly string[] } | undefined)
  return parsed?.jobIds?.length ?? 0
}

/**
 * Removes a job that has no payload. A job whose payload appears meanwhile is added again by the sweeper, so that nothing is
 * lost.
 */
export async function removeJob({ queue, id }: JobPlace, bull: Queue<CommitJob>): Promise<string> {
  const { redis, keys } = queue
  const [parts, acceptedAt] = await Promise.all([
    redis.exists(keys.payload(id), keys.joined(id), keys.arriving(id)),
    redis.zscore(keys.pending, id),
  ])
  if (parts > 0 || acceptedAt !== null) {
    throw new Refusal(
      `it has a payload of accepted requests, which must not be lost: "penstock queues to-dead-letters ${queue.name} ${id}"`,
    )
  }
  if ((await bull.remove(id)) !== 1) throw new Refusal('a worker has it in progress')
  return 'removed'
}

function jobOf(bull: Queue<CommitJob>, id: string): Job<CommitJob> {
  return new Job<CommitJob>(bull, 'commit', { payloads: 0, bytes: 0 }, JOB_OPTIONS, id)
}
