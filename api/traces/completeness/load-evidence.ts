import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectDroppedSpans } from '../../../clickhouse/queries/traces/completeness/select-dropped-spans.ts'
import {
  joinLosses,
  lossOf,
  selectTraceLosses,
  type TraceLoss,
} from '../../../clickhouse/queries/traces/completeness/select-trace-losses.ts'
import type { TraceArrivals } from '../../../clickhouse/queries/traces/select-trace-extent.ts'
import type { TraceKey } from '../../../clickhouse/read-connection.ts'
import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { errorFields } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import type { RowKind } from '../../../shared/runtime/retention.ts'
import { queryDirectory } from '../../http/directory.ts'
import type { TraceQueues } from './trace-queues.ts'

/** Dependencies of {@link beginEvidence}. */
export interface EvidenceDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'dropping'>
  readonly firstKeptDay: (workspaceId: string, kind: RowKind) => Promise<number>
  readonly logger: Logger
  readonly traceQueues: TraceQueues
}

/** Evidence by which a trace is complete or not. Times are Unix ms. */
export interface Evidence {
  /** Everything that was accepted before this time was stored before the spans were read. By the clock of Redis. */
  readonly settledBeforeMs: number
  readonly readAtMs: number
  readonly arrivals: TraceArrivals
  /** Start of the first day whose spans are retained. */
  readonly keptSinceMs: number
  readonly losses: readonly TraceLoss[]
}

/** The time of a trace is from before its first arrival until after its last one: parents are sent after their children. */
const BEFORE_MS = 60_000
const AFTER_MS = 600_000
/** A loss so long before or after the arrivals of a trace is near, if the surface has sent spans of the trace. */
const NEAR_MS = 60_000
/** Redis has the counts of the last hours, ClickHouse those of all others. */
const HOURS_IN_REDIS = 7

/** Loads the rest of the evidence, when it is known when the spans of the trace arrived. */
type LoadEvidence = (arrivals: TraceArrivals) => Promise<Evidence | undefined>

/**
 * Reads what is settled, and returns a function that loads the rest of the evidence. Spans that are read between both steps
 * contain everything that the first step calls settled, and the second step knows of everything that was lost until then. The
 * evidence is undefined if the queues are unavailable.
 */
export async function beginEvidence(deps: EvidenceDeps, key: TraceKey, signal: AbortSignal): Promise<LoadEvidence> {
  const [settled, firstKeptDay] = await Promise.all([
    unlessUnavailable(deps.logger, () => deps.traceQueues.settledSpans()),
    deps.firstKeptDay(key.workspaceId, 'traces'),
  ])
  if (settled === undefined) return async () => undefined
  return async arrivals => {
    const period = {
      ...{ workspaceId: key.workspaceId, surfaceIds: arrivals.surfaceIds, replayedBeforeMs: settled.readAtMs },
      ...{ nearFromMs: arrivals.firstMs - NEAR_MS, nearToMs: arrivals.lastMs + NEAR_MS },
      ...{ fromMs: arrivals.firstMs - BEFORE_MS, toMs: Math.min(arrivals.lastMs + AFTER_MS, settled.readAtMs) },
    }
    const [losses, dropped, refused] = await Promise.all([
      selectTraceLosses(deps.clickhouse, period, signal),
      droppedOf(deps, key, period, signal),
      unlessUnavailable(deps.logger, () => refusedOf(deps.traceQueues, period)),
    ])
    if (refused === undefined) return undefined
    // Most refusals are counted in both places.
    return {
      ...settled,
      arrivals,
      keptSinceMs: firstKeptDay * DAY_MS,
      losses: joinLosses([...losses, ...dropped, ...refused], Math.max),
    }
  }
}

type Period = Parameters<typeof selectTraceLosses>[1]

/** Most workspaces never had a rule: they do not pay for the query. */
async function droppedOf(
  { clickhouse, directory }: EvidenceDeps,
  key: TraceKey,
  period: Period,
  signal: AbortSignal,
): Promise<TraceLoss[]> {
  const rules = await queryDirectory(directory.dropping(key.workspaceId))
  return rules === undefined ? [] : selectDroppedSpans(clickhouse, key, period, signal)
}

async function refusedOf(traceQueues: TraceQueues, period: Period): Promise<TraceLoss[]> {
  const { workspaceId, surfaceIds, fromMs, toMs } = period
  const last = Math.floor(toMs / HOUR_MS)
  const first = Math.max(Math.floor(fromMs / HOUR_MS), last - HOURS_IN_REDIS)
  const hours = Array.from({ length: last - first + 1 }, (_, i) => first + i)
  const surfaces = surfaceIds.map(surfaceId => ({ workspaceId, surfaceId }))
  const refused = await traceQueues.refusedSpans(surfaces, hours)
  const losses = refused.map(({ surfaceId, hour, final, repeated }) => {
    const counts = { count: final, sentAgain: repeated }
    return lossOf(period, 'refused', { surfaceId, ...counts, fromMs: hour * HOUR_MS, toMs: (hour + 1) * HOUR_MS })
  })
  return joinLosses(losses, (a, b) => a + b)
}

/** Returns undefined if Redis fails: a trace is shown without it, and is not called complete then. */
async function unlessUnavailable<T>(logger: Logger, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    logger.warn(errorFields(error), 'the queues are unavailable, so traces cannot be called complete')
    return undefined
  }
}
