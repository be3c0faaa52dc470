import type { LoggedRequests, SurfaceKind } from '../../clickhouse/queries/pipeline/select-logged-requests.ts'
import { ADMITTED_QUEUES, type AdmittedQueue, type QueueName } from '../../schemas/queues/names.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import type { CountedQueue } from '../../shared/queue/request-counts.ts'
import { QUEUES_OF_SIGNAL, type SurfaceWatermarks } from '../../shared/queue/watermark.ts'

/** Queues whose requests are in the log already. */
const LOGGED_BEFORE: readonly QueueName[] = ['dead-letters', 'dead-letter-index']
/** A request arrives before it is accepted: by the time that its body takes, and by the difference of two clocks. */
const ARRIVES_BEFORE_MS = 30_000
/** Most counts that are read from a queue: of the surfaces with something unfinished, for each hour. */
const COUNTS_MAX = 10_000

/** A surface with its watermarks. */
export interface SurfaceMarks {
  readonly surfaceId: string
  readonly marks: SurfaceWatermarks
}

/** Requests that are counted to know how many wait. */
interface WaitingRequests {
  /** Surfaces that have something unfinished of a kind. Others wait for nothing. */
  readonly pairs: readonly SurfaceKind[]
  /** All hours in which an unfinished request can have arrived, in hours since 1970. Undefined if they are too many to count. */
  readonly hours: readonly number[] | undefined
}

/** Returns which requests to count, from the watermarks of the surfaces. */
export function waitingRequests(surfaces: readonly SurfaceMarks[], readAtMs: number): WaitingRequests {
  const pairs: SurfaceKind[] = []
  let sinceMs = readAtMs
  for (const { surfaceId, marks } of surfaces) {
    for (const queue of ADMITTED_QUEUES) {
      const busy = QUEUES_OF_SIGNAL[queue].filter(
        name => !LOGGED_BEFORE.includes(name) && marks.unfinishedWork[name] > 0,
      )
      if (busy.length === 0) continue
      pairs.push({ surfaceId, kind: queue })
      sinceMs = Math.min(sinceMs, ...busy.map(name => marks.unfinishedSinceMs[name]))
    }
  }
  const first = Math.floor((sinceMs - ARRIVES_BEFORE_MS) / HOUR_MS)
  const count = Math.floor((readAtMs + ARRIVES_BEFORE_MS) / HOUR_MS) - first + 1
  const hours = pairs.length * count > COUNTS_MAX ? undefined : Array.from({ length: count }, (_, i) => first + i)
  return { pairs, hours: pairs.length === 0 ? [] : hours }
}

/** Returns the surfaces whose accepted requests are counted, by queue. `member` returns the name of a surface in Redis. */
export function countedQueues(pairs: readonly SurfaceKind[], member: (surfaceId: string) => string): CountedQueue[] {
  return ADMITTED_QUEUES.map(queue => ({
    queue,
    members: pairs.filter(({ kind }) => kind === queue).map(pair => member(pair.surfaceId)),
  }))
}

/**
 * Returns how many requests of each kind are accepted and not in the log. `accepted` has the counts of Redis by queue (as in
 * `ADMITTED_QUEUES`) and hour, `logged` the log and the counts that were copied from Redis and may be removed there.
 */
export function depthsOf(
  accepted: readonly (readonly number[])[],
  hours: readonly number[],
  logged: readonly LoggedRequests[],
): Record<AdmittedQueue, number> {
  const found = new Map(logged.map(row => [`${row.kind} ${row.hour}`, row]))
  const depthOf = (queue: AdmittedQueue, counts: readonly number[]) => {
    const left = hours.map((hour, i) => {
      const row = found.get(`${queue} ${hour}`)
      return Math.max(counts[i] ?? 0, row?.accepted ?? 0) - (row?.processed ?? 0)
    })
    // The two stores are not read at one moment, so a request may be in the log and not yet counted.
    return Math.max(
      0,
      left.reduce((sum, n) => sum + n, 0),
    )
  }
  const depths = ADMITTED_QUEUES.map((queue, i) => [queue, depthOf(queue, accepted[i] ?? [])])
  return Object.fromEntries(depths) as Record<AdmittedQueue, number>
}
