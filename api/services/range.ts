import type { z } from 'zod'
import type { RatesFilter } from '../../clickhouse/queries/services/select-span-rates.ts'
import { type readServiceQuerySchema, SERVICES_RANGE_DAYS_MAX } from '../../schemas/http/services.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../schemas/units.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import type { Outcome } from '../http/outcome.ts'
import type { Resource } from '../http/resource.ts'
import { readTimeRange } from '../http/time-range.ts'
import { divideTime } from '../http/time-steps.ts'

/** Answers about services that there are not, or that cannot be read. */
export const SERVICES: Resource = {
  notFound: {
    code: 'NOT_FOUND',
    message: 'there is no such service with spans in the range, or they are no longer retained',
  },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'services are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** Minutes have 32 bits, also those of the day before. */
const RANGE_BOUNDS = {
  daysMax: SERVICES_RANGE_DAYS_MAX,
  ...{ minMs: DAY_MS, maxMs: Date.UTC(2100, 0, 1) },
} as const

/** A range in Unix seconds, from the start of its first step to the end of a minute. */
export interface Range {
  readonly fromSeconds: number
  readonly toSeconds: number
  readonly stepSeconds: number
  readonly count: number
}

/** Query of a read of a range. */
type RangeQuery = z.infer<typeof readServiceQuerySchema>

/** Returns the range of a query in whole steps, of which there are about a hundred. `defaultMs` is its length without a start. */
export function rangeOf(query: Pick<RangeQuery, 'from' | 'to'>, nowMs: number, defaultMs = HOUR_MS): Outcome<Range> {
  const range = readTimeRange(query, nowMs, { ...RANGE_BOUNDS, defaultMs })
  if (!range.ok) return range
  const { fromMs, toMs } = range.value
  const stepSeconds = Math.max(divideTime(fromMs, toMs).stepMs, MINUTE_MS) / 1_000
  const { startMs, count } = divideTime(fromMs, toMs, stepSeconds)
  const fromSeconds = startMs / 1_000
  return { ok: true, value: { fromSeconds, toSeconds: 60 * Math.ceil(toMs / MINUTE_MS), stepSeconds, count } }
}

/** Returns the spans that a query is about. */
export function filterOf(workspaceId: string, { fromSeconds, toSeconds }: Range, { surface, environment }: RangeQuery) {
  return { workspaceId, fromSeconds, toSeconds, surfaceId: surface, environment } satisfies RatesFilter
}

/** Returns a range as responses have it. */
export function presentRange({ fromSeconds, toSeconds, stepSeconds }: Range) {
  return { from: rfc3339FromUnixMs(1_000 * fromSeconds), to: rfc3339FromUnixMs(1_000 * toSeconds), stepSeconds }
}
