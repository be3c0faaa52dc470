import { HOUR_MS } from '../../schemas/units.ts'
import type { QueueKeys } from '../../shared/queue/queue.ts'

/** What a commit adds to its queue. */
interface Acceptance {
  readonly jobId: string
  /** The time of Redis, in Unix ms, after which the commit is refused. */
  readonly deadlineMs: number
  /** Unix time of the arrival of the first request. All requests have arrived in the same hour. */
  readonly arrivedAtMs: number
  readonly frames: number
  readonly bytes: number
  /** Cost and requests of each surface, by its member of `shares`. */
  readonly surfaces: ReadonlyMap<string, SurfaceRequests>
}

/** The requests of one surface in a commit. */
export interface SurfaceRequests {
  cost: number
  requests: number
}

/** Returns the keys in the order of accept.lua. `source` is the key with the bytes. */
export function acceptKeys(keys: QueueKeys, payload: string, source: string): string[] {
  const { flow, shares, pending, busy, arrivals } = keys
  return [payload, flow, shares, pending, source, busy, arrivals]
}

/** Returns the arguments that accept.lua and join.lua have in common. */
export function acceptArguments(acceptance: Acceptance): (string | number)[] {
  const { deadlineMs, jobId, arrivedAtMs, frames, bytes, surfaces } = acceptance
  let sum = 0
  for (const { cost } of surfaces.values()) sum += cost
  const args = [Math.floor(deadlineMs), jobId, arrivedAtMs, frames, bytes, sum, surfaces.size]
  for (const [member, { cost, requests }] of surfaces) args.push(member, cost, requests)
  return args
}

/** The longest life of a payload that was written and not accepted. */
export const UNACCEPTED_LIFETIME_MS = 60_000

/** Returns the hour of a Unix time in ms, in hours since 1970. The requests of a commit have arrived in one hour. */
export function hourOf(unixMs: number): number {
  return Math.floor(unixMs / HOUR_MS)
}
