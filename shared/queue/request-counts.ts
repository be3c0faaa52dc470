import type { Redis } from 'ioredis'
import { ADMITTED_QUEUES, RECEIPT_KIND_OF_QUEUE, type ReceiptKind } from '../../schemas/queues/names.ts'
import { queueKeys } from './queue.ts'

/**
 * Outcomes of a request at the edge.
 *
 * - accepted: on disk in Redis. Counted by the script that accepts it, so always exact
 * - acknowledged: answered with success. An edge that is killed loses those of its last second
 * - refused: answered with 4xx, or 503 before Redis was asked to accept it. Lost like the acknowledged ones
 * - unconfirmed: answered 503 because Redis did not confirm in time. Accepted or not
 */
export const REQUEST_OUTCOMES = ['accepted', 'acknowledged', 'refused', 'unconfirmed'] as const
/** Outcome of a request at the edge. */
export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number]

/** Requests of one surface and kind that arrived in one hour, with one outcome. The number only grows. */
export interface RequestCount {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly kind: ReceiptKind
  /** Hours since 1970. */
  readonly hour: number
  readonly outcome: RequestOutcome
  readonly requests: number
}

/** A count with its field in Redis. */
interface StoredCount extends RequestCount {
  readonly key: string
  readonly field: string
}

/** Returns the field of a count in the hash `arrivals`. `member` is that of the surface in `shares`. */
export function countField(hour: number, member: string, outcome: RequestOutcome): string {
  return `${hour}/${member}/${outcome}`
}

/**
 * Yields the counts of all queues that are in Redis, in pages, and removes those of each page that arrived before
 * `keepFromHour` when the next one is requested. Until then, the caller has stored them.
 */
export async function* takeRequestCounts(redis: Redis, keepFromHour: number): AsyncGenerator<readonly RequestCount[]> {
  for (const queue of ADMITTED_QUEUES) {
    const key = queueKeys(queue).arrivals
    for await (const page of redis.hscanStream(key, { count: 1_000 })) {
      const counts = countsOf(key, RECEIPT_KIND_OF_QUEUE[queue], page as string[])
      yield counts
      const old = counts.filter(({ hour }) => hour < keepFromHour)
      if (old.length > 0) await redis.hdel(key, ...old.map(({ field }) => field))
    }
  }
}

function countsOf(key: string, kind: ReceiptKind, page: readonly string[]): StoredCount[] {
  const counts: StoredCount[] = []
  for (let i = 0; i < page.length; i += 2) {
    const field = page[i] ?? ''
    const [hour, workspaceId = '', surfaceId = '', outcome] = field.split('/')
    counts.push({
      ...{ key, field, kind, workspaceId, surfaceId },
      hour: Number(hour),
      outcome: outcome as RequestOutcome,
      requests: Number(page[i + 1]),
    })
  }
  return counts
}
