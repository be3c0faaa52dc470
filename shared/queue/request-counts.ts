import { ADMITTED_QUEUES, type AdmittedQueue } from '../../schemas/queues/names.ts'
import { shareMember } from './queue.ts'
import type { QueueList, Queues } from './queues.ts'
import { readQueueMarks } from './registry/queue-marks.ts'
import { numberOf } from './registry/queue-tag.ts'

/**
 * Counts of requests.
 *
 * - accepted: on disk in Redis. Counted by the script that accepts it, so always exact
 * - received: answered by an edge, whose key names the surface. The sum of those below
 * - acknowledged: confirmed by Redis
 * - unconfirmed: answered 503 because Redis did not confirm in time. Accepted or not
 * - done: answered with success, without anything to accept
 * - refused-{status}: answered with 4xx or 5xx, and not accepted
 * - over-quota: those of the refused ones that were refused for a quota of their key. They are counted twice
 *
 * An edge that is killed loses those of its last second, but for the accepted ones.
 */
export type RequestOutcome =
  | 'accepted'
  | 'received'
  | 'acknowledged'
  | 'unconfirmed'
  | 'done'
  | typeof OVER_QUOTA
  | `${typeof REFUSED}${number}`

/** The beginning of the outcomes of refused requests. */
export const REFUSED = 'refused-'

/** The outcome of requests that were refused for a quota of their key. */
export const OVER_QUOTA = 'over-quota'

/** Returns the outcome of requests that are refused with this status. */
export function refusedWith(status: number): RequestOutcome {
  return `${REFUSED}${status}`
}

/** The member of the counts of all surfaces beyond the bound of what an edge counts apart. No surface has this name. */
export const OTHER_SURFACES = '*/*'

/** Requests of one surface and kind that arrived in one hour, with one outcome. The number only grows. */
interface RequestCount {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly kind: AdmittedQueue
  /** Hours since 1970. */
  readonly hour: number
  readonly outcome: RequestOutcome
  /** The queue and the epoch of its Redis in which they are counted. The counts of several places add up. */
  readonly place: string
  readonly requests: number
}

/** A count with its field in Redis. */
interface StoredCount extends RequestCount {
  readonly field: string
}

/** Returns the field of a count in the hash `arrivals`. `member` is that of the surface in `shares`. */
export function countField(hour: number, member: string, outcome: RequestOutcome): string {
  return `${hour}/${member}/${outcome}`
}

/** Surfaces whose accepted requests of one queue are counted. */
export interface CountedQueue {
  readonly queue: AdmittedQueue
  /** Members of `shareMember`. */
  readonly members: readonly string[]
}

/**
 * Returns how many requests were accepted in each of these hours of arrival, in hours since 1970, over the surfaces of each
 * queue, as far as Redis still has their counts. Reads a field for each surface, hour and equal queue, at once.
 */
export async function countAccepted(
  queues: Queues,
  asked: readonly CountedQueue[],
  hours: readonly number[],
): Promise<number[][]> {
  if (hours.length === 0 || asked.every(({ members }) => members.length === 0))
    return asked.map(() => hours.map(() => 0))
  const list = await queues.read()
  return Promise.all(
    asked.map(async ({ queue, members }) => {
      const sums = hours.map(() => 0)
      if (members.length === 0) return sums
      const fields = members.flatMap(member => hours.map(hour => countField(hour, member, 'accepted')))
      const counts = await Promise.all(
        placesOf(queues, list, queue).map(({ redis, key }) => redis.hmget(key, ...fields)),
      )
      for (const ofPlace of counts) {
        for (const [i, count] of ofPlace.entries())
          sums[i % hours.length] = (sums[i % hours.length] ?? 0) + Number(count ?? 0)
      }
      return sums
    }),
  )
}

/** Returns where the counts of the queues of a name are. Those of edges are with the first queue. */
function placesOf(queues: Queues, list: QueueList, name: AdmittedQueue) {
  const places = new Map([queues.firstOf(name), ...list.of(name)].map(queue => [queue.keys.arrivals, queue]))
  return [...places].map(([key, { redis, tag }]) => ({ key, redis, tag }))
}

/**
 * Yields the counts of all queues that are in Redis, in pages, and removes those of each page that arrived before
 * `keepFromHour` when the next one is requested. Until then, the caller has stored them. A count of a place may be yielded several
 * times, and the largest number is right: it grows until it is removed.
 */
export async function* takeRequestCounts(
  queues: Queues,
  keepFromHour: number,
): AsyncGenerator<readonly RequestCount[]> {
  const list = await queues.read()
  // Read before the counts: those of a Redis that loses its data in between are too small for the old epoch, and change nothing.
  const marks = await readQueueMarks(queues, list.numbers)
  for (const queue of ADMITTED_QUEUES) {
    for (const { redis, key, tag } of placesOf(queues, list, queue)) {
      const number = queues.serverNumberOf(queue, numberOf(tag))
      const epoch = marks.get(number)?.epoch ?? ''
      // Queues that are new, or whose loss is not recorded yet: their counts are taken once they have an epoch.
      if (epoch === '' && marks.size > 0 && list.numbers.includes(number)) continue
      const place = `${tag} ${epoch}`
      for await (const page of redis.hscanStream(key, { count: 1_000 })) {
        const counts = countsOf(queue, place, page as string[])
        if (counts.length === 0) continue
        yield counts
        const old = counts.filter(({ hour }) => hour < keepFromHour)
        if (old.length > 0) await redis.hdel(key, ...old.map(({ field }) => field))
      }
    }
  }
}

function countsOf(kind: AdmittedQueue, place: string, page: readonly string[]): StoredCount[] {
  const counts: StoredCount[] = []
  for (let i = 0; i < page.length; i += 2) {
    const field = page[i] ?? ''
    const [hour, workspaceId = '', surfaceId = '', outcome] = field.split('/')
    counts.push({
      ...{ field, kind, place, workspaceId, surfaceId },
      hour: Number(hour),
      outcome: outcome as RequestOutcome,
      requests: Number(page[i + 1]),
    })
  }
  return counts
}

/** Statuses after which a client sends the same request again, as OTLP and RFC 9110 ask it to. */
const REPEATED_STATUSES = [408, 429, 502, 503, 504]
/** Outcomes of requests that were refused with one of these statuses. */
export const REPEATED = REPEATED_STATUSES.map(refusedWith)

/** Requests of a surface that arrived in an hour and were refused. */
interface Refusals {
  readonly surfaceId: string
  /** Hours since 1970. */
  readonly hour: number
  /** Those that clients send again. */
  readonly repeated: number
  /** Those that they do not. */
  readonly final: number
}

/**
 * Returns the requests of a queue that edges have refused of these surfaces in these hours of arrival, as far as Redis still has
 * their counts. An edge adds its counts once a second.
 */
export async function countRefused(
  queues: Queues,
  queue: AdmittedQueue,
  surfaces: readonly { readonly workspaceId: string; readonly surfaceId: string }[],
  hours: readonly number[],
): Promise<Refusals[]> {
  // Those that are neither accepted nor repeated, because the statuses of all refusals are not known here.
  const accepted = ['acknowledged', 'unconfirmed', 'done'] as const
  const outcomes = ['received', ...accepted, ...REPEATED] as const
  const asked = surfaces.flatMap(surface => hours.map(hour => ({ ...surface, hour })))
  const fields = asked.flatMap(surface =>
    outcomes.map(outcome => countField(surface.hour, shareMember(surface), outcome)),
  )
  if (fields.length === 0) return []
  const { redis, keys } = queues.firstOf(queue)
  const counts = await redis.hmget(keys.arrivals, ...fields)
  const refusals = asked.map(({ surfaceId, hour }, i) => {
    const [received = 0, ...others] = outcomes.map((_, j) => Number(counts[i * outcomes.length + j] ?? 0))
    const sum = (some: readonly number[]) => some.reduce((total, count) => total + count, 0)
    return { surfaceId, hour, repeated: sum(others.slice(accepted.length)), final: received - sum(others) }
  })
  return refusals.filter(({ repeated, final }) => repeated > 0 || final > 0)
}
