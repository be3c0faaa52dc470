import type { AuditRange } from '../../clickhouse/queries/audit/select-request-balance.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { QueueLoss } from '../../schemas/records/installation.ts'
import { HOUR_S } from '../../schemas/units.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { OTHER_SURFACES } from '../../shared/queue/request-counts.ts'
import { readWatermarks } from '../../shared/queue/watermark.ts'
import type { LossLine, RequestLine } from './report.ts'

/**
 * An hour is judged when everything accepted until this long after its end is settled: a request is accepted within 17 s of
 * its arrival, and the clocks of edges differ a little (docs/api/receipts.md#watermarks).
 */
const SETTLING_S = 120

type NotJudged = NonNullable<RequestLine['notJudged']>

/** Collaborators of {@link Judge}. */
interface JudgeDeps {
  readonly queues: Queues
  readonly losses: readonly QueueLoss[]
}

/** Decides which hours of a surface are settled, by its watermarks. */
export class Judge {
  readonly #deps: JudgeDeps
  readonly #firstHour: number
  readonly #losses: readonly LossLine[]

  /** Nothing is known of requests that arrived in the first hour that is counted, or before, unless some of them were lost. */
  constructor(deps: JudgeDeps, firstCountedHour: number | undefined) {
    this.#deps = deps
    this.#losses = deps.losses.map(lossLine)
    this.#firstHour = firstCountedHour === undefined ? Number.POSITIVE_INFINITY : firstCountedHour + HOUR_S
  }

  /** Returns a loss of the queues that may have lost requests of an hour, which is a Unix time in seconds. */
  lossOf(hour: number): LossLine | undefined {
    return this.#losses.find(line => hasHourOf(line, { from: hour, to: hour + HOUR_S }))
  }

  /** Returns why an entry that is not settled is not judged. */
  whyNot(entry: { readonly workspaceId: string; readonly surfaceId: string; readonly hour: number }): NotJudged {
    if (!this.#isCounted(entry.hour)) return 'not_counted'
    return `${entry.workspaceId}/${entry.surfaceId}` === OTHER_SURFACES ? 'other_surfaces' : 'unsettled'
  }

  /** Returns those of the entries whose hour is settled for these kinds of requests. */
  async settled<T extends { workspaceId: string; surfaceId: string; hour: number }>(
    entries: readonly T[],
    kindsOf: (entry: T) => readonly AdmittedQueue[],
  ): Promise<T[]> {
    const isCounted = (entry: T) =>
      this.#isCounted(entry.hour) && `${entry.workspaceId}/${entry.surfaceId}` !== OTHER_SURFACES
    const counted = entries.filter(isCounted)
    const surfaces = [...new Map(counted.map(entry => [`${entry.workspaceId}/${entry.surfaceId}`, entry])).values()]
    const marks = new Map<string, Readonly<Record<AdmittedQueue, number>>>()
    for (let i = 0; i < surfaces.length; i += 500) {
      const page = surfaces.slice(i, i + 500)
      // Lost requests count as settled: they will never be stored.
      const read = await readWatermarks(this.#deps.queues, page, { beyondLosses: true })
      for (const [j, { workspaceId, surfaceId }] of page.entries()) {
        const settled = read.surfaces[j]?.settledBeforeMs
        if (settled) marks.set(`${workspaceId}/${surfaceId}`, settled)
      }
    }
    return counted.filter(entry => {
      const settled = marks.get(`${entry.workspaceId}/${entry.surfaceId}`)
      const neededMs = (entry.hour + HOUR_S + SETTLING_S) * 1_000
      return settled !== undefined && kindsOf(entry).every(kind => settled[kind] >= neededMs)
    })
  }

  #isCounted(hour: number): boolean {
    return hour >= this.#firstHour || this.lossOf(hour) !== undefined
  }
}

/** A request is accepted within this time of its arrival (docs/api/receipts.md#watermarks). */
const ACCEPTED_WITHIN_MS = 20_000

/** Returns a loss as the report states it. */
export function lossLine({ settledBeforeMs, seenAtMs, foundAtMs }: QueueLoss): LossLine {
  const from = Math.min(seenAtMs, ...Object.values(settledBeforeMs)) - ACCEPTED_WITHIN_MS
  const [since, seen, found] = [from, seenAtMs, foundAtMs].map(atMs => new Date(atMs).toISOString()) as [
    string,
    string,
    string,
  ]
  return { since, seen, found }
}

/** Returns whether requests that arrived in a range, in Unix seconds, may have been lost. */
export function hasHourOf({ since, found }: LossLine, { from, to }: Pick<AuditRange, 'from' | 'to'>): boolean {
  return Date.parse(since) < to * 1_000 && Date.parse(found) >= from * 1_000
}
