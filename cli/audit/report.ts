import type { DroppedOfHour } from '../../clickhouse/queries/audit/select-dropped-records.ts'
import type { RequestBalance } from '../../clickhouse/queries/audit/select-request-balance.ts'

/** Something that does not add up, in one hour of arrival of one surface. */
export interface Difference {
  /** `requests`, or the table whose rows or objects differ. */
  readonly table: string
  readonly workspaceId: string
  readonly surfaceId: string
  /** The hour of arrival, RFC 3339. */
  readonly hour: string
  /** The day of arrival. */
  readonly day: string
  /** Description of the difference, with both numbers. */
  readonly text: string
}

/** Why the requests of a surface and hour are not judged, with the text for people. */
export const NOT_JUDGED = {
  not_counted: 'requests were not counted then, or not the whole hour',
  other_surfaces: 'requests of these surfaces are counted together',
  unsettled: 'requests may still be queued, or the hour has just ended',
} as const

/** Requests of one surface and hour, of all kinds together. */
export interface RequestLine extends Omit<RequestBalance, 'kind' | 'hour'> {
  readonly hour: string
  readonly refused: number
  readonly queued: number
  /** Why a difference of this line would not be reported. Absent if the line is judged. */
  readonly notJudged?: keyof typeof NOT_JUDGED | undefined
}

/** Rows of one table in the whole range. */
export interface TableLine {
  readonly table: string
  readonly logged: number
  readonly deleted: number
  readonly present: number
}

/** Records of one surface, kind and hour that a rule has dropped. */
export interface DroppedLine extends Omit<DroppedOfHour, 'hour'> {
  readonly hour: string
}

/** A loss of the data of the queues. Times are RFC 3339. */
export interface LossLine {
  /** The earliest arrival of a request that may be lost. */
  readonly since: string
  /** The last check that found the data. */
  readonly seen: string
  /** The check that found the loss. */
  readonly found: string
}

/** The outcome of an audit. */
export interface AuditReport {
  readonly from: string
  readonly to: string
  /** Losses of the data of the queues that concern the range. */
  readonly losses: readonly LossLine[]
  readonly requests: readonly RequestLine[]
  readonly tables: readonly TableLine[]
  readonly dropped: readonly DroppedLine[]
  readonly objects: { readonly named: number; readonly missing: number }
  readonly differences: readonly Difference[]
}

/** Returns the hour of a Unix time in seconds, RFC 3339. */
export function hourText(seconds: number): string {
  return `${new Date(seconds * 1_000).toISOString().slice(0, 16)}Z`
}

/** Adds the kinds of one surface and hour. */
export function requestLine(
  hour: number,
  kinds: readonly RequestBalance[],
  notJudged: RequestLine['notJudged'],
): RequestLine {
  const sum = (count: (kind: RequestBalance) => number) => kinds.reduce((total, kind) => total + count(kind), 0)
  const { workspaceId = '', surfaceId = '' } = kinds[0] ?? {}
  const refusedByStatus: Record<string, number> = {}
  for (const kind of kinds) {
    for (const [status, requests] of Object.entries(kind.refusedByStatus)) {
      refusedByStatus[status] = (refusedByStatus[status] ?? 0) + requests
    }
  }
  return {
    ...{ workspaceId, surfaceId, hour: hourText(hour) },
    received: sum(kind => kind.received),
    refused: sum(refusedOf),
    refusedByStatus,
    done: sum(kind => kind.done),
    unconfirmed: sum(kind => kind.unconfirmed),
    accepted: sum(kind => kind.accepted),
    acknowledged: sum(kind => kind.acknowledged),
    stored: sum(kind => kind.stored),
    deadLettered: sum(kind => kind.deadLettered),
    discarded: sum(kind => kind.discarded),
    answered: sum(kind => kind.answered),
    queued: sum(kind => Math.max(0, kind.accepted - settledOf(kind))),
    notJudged,
  }
}

/** Returns the number of requests that are refused. */
export function refusedOf({ refusedByStatus }: RequestBalance): number {
  return Object.values(refusedByStatus).reduce((sum, requests) => sum + requests, 0)
}

/** Returns the number of requests that are settled. */
export function settledOf({ stored, deadLettered, discarded, answered }: RequestBalance): number {
  return stored + deadLettered + discarded + answered
}
