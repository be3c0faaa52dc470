import type { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Period } from '../../clickhouse/queries/pipeline/period.ts'
import { selectLetterCounts, selectPurgedLetters } from '../../clickhouse/queries/pipeline/select-letter-counts.ts'
import { selectLoggedRequests } from '../../clickhouse/queries/pipeline/select-logged-requests.ts'
import { type RateRow, selectRates, selectRefusals } from '../../clickhouse/queries/pipeline/select-rates.ts'
import type { TimeSteps } from '../../clickhouse/select.ts'
import {
  PIPELINE_DAYS_MAX,
  PIPELINE_SURFACES_MAX,
  type Pipeline,
  type PipelineHistory,
  type PipelineQueue,
  pipelineQuerySchema,
  readPipeline,
} from '../../schemas/http/pipeline.ts'
import { type AdmittedQueue, isAdmitted, QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { DAY_MS } from '../../schemas/units.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { shareMember } from '../../shared/queue/queue.ts'
import type { CountedQueue } from '../../shared/queue/request-counts.ts'
import type { OldestWatermarks, WatermarkSurface, Watermarks } from '../../shared/queue/watermark.ts'
import { errorFields, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import type { Resource } from '../http/resource.ts'
import { readTimeRange } from '../http/time-range.ts'
import { divideTime } from '../http/time-steps.ts'
import { readFromQueues } from './list-watermarks.ts'
import { countedQueues, depthsOf, type SurfaceMarks, waitingRequests } from './queue-depths.ts'

interface Deps extends GuardedRouteDeps {
  /** Counts accepted requests in the Redis of the queues. */
  readonly acceptedRequests: (asked: readonly CountedQueue[], hours: readonly number[]) => Promise<number[][]>
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'surfaces'>
  readonly now: () => number
  readonly oldestWatermarks: () => Promise<OldestWatermarks>
  /** Slots for reads of the history. */
  readonly pipelineReads: Pick<FairSlots, 'run'>
  readonly watermarks: (surfaces: readonly WatermarkSurface[]) => Promise<Watermarks>
}

type PipelineQuery = z.infer<typeof pipelineQuerySchema>

const PIPELINE: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the queues are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** Share of the time of a request in which stored data is read, so that the queues are returned if it is not available. */
const STORE_SHARE = 0.6
const UNAVAILABLE = 'stored data cannot be read at the moment: read again after some seconds'
const UNCOUNTABLE = 'too many surfaces have waited for too long: their requests are not counted'

/** Returns the route that reads the pipeline of a workspace (docs/api/receipts.md#pipeline). */
export function readPipelineRoute(deps: Deps): Route {
  return guardedRoute(deps, readPipeline, {
    resource: PIPELINE,
    query: pipelineQuerySchema,
    async run({ workspaceId, query, deadline }: CallerRead<PipelineQuery>): Promise<Outcome<Pipeline>> {
      const steps = stepsOf(query, deps.now())
      if (!steps.ok) return steps
      return { ok: true, value: await loadPipeline(deps, { workspaceId, steps: steps.value, deadline }) }
    },
  })
}

function stepsOf(query: PipelineQuery, nowMs: number): Outcome<TimeSteps> {
  const range = readTimeRange(query, nowMs, { defaultMs: DAY_MS, daysMax: PIPELINE_DAYS_MAX })
  return range.ok ? { ok: true, value: divideTime(range.value.fromMs, range.value.toMs) } : range
}

interface Read {
  readonly workspaceId: string
  readonly steps: TimeSteps
  readonly deadline: AbortSignal
}

async function loadPipeline(deps: Deps, { workspaceId, steps, deadline }: Read): Promise<Pipeline> {
  const page = { limit: PIPELINE_SURFACES_MAX + 1, after: undefined }
  const found = await queryDirectory(deps.directory.surfaces(workspaceId, page))
  const isPartial = found.length > PIPELINE_SURFACES_MAX
  const surfaceIds = found.slice(0, PIPELINE_SURFACES_MAX).map(({ id }) => id)
  // Surfaces that are not read may have something older.
  const oldest = isPartial ? await readFromQueues(deps.oldestWatermarks()) : undefined
  const read = await readFromQueues(deps.watermarks(surfaceIds.map(surfaceId => ({ workspaceId, surfaceId }))))
  const { readAtMs } = read
  const surfaces = read.surfaces.map((marks, i) => ({ surfaceId: surfaceIds[i] ?? '', marks }))

  const { pairs, hours } = waitingRequests(surfaces, readAtMs)
  const nothing = hours === undefined || hours.length === 0
  const asked = countedQueues(pairs, surfaceId => shareMember({ workspaceId, surfaceId }))
  const fromStore = (signal: AbortSignal) =>
    Promise.all([
      loadHistory(deps.clickhouse, { workspaceId, steps }, signal),
      nothing ? [] : selectLoggedRequests(deps.clickhouse, { workspaceId, pairs, firstHour: hours[0] ?? 0 }, signal),
    ])
  const [accepted, stored] = await Promise.all([
    readFromQueues(deps.acceptedRequests(asked, hours ?? [])),
    unlessUnavailable(deps, workspaceId, fromStore, deadline),
  ])
  const [history, logged] = stored ?? [null, undefined]
  const isCounted = hours !== undefined && (logged !== undefined || pairs.length === 0)
  const depths = isCounted ? depthsOf(accepted, hours, logged ?? []) : undefined
  const state = { readAtMs, surfaces, oldest, depths, waiting: new Set(pairs.map(({ kind }) => kind)) }
  return {
    readAt: new Date(readAtMs).toISOString(),
    isPartial,
    queues: QUEUES.map(queue => presentQueue(queue, state)),
    history,
    unavailable: stored === undefined ? UNAVAILABLE : hours === undefined ? UNCOUNTABLE : null,
  }
}

/** Returns what is read from ClickHouse in a slot of the workspace, or undefined if it cannot be read in time. */
async function unlessUnavailable<T>(
  {
    pipelineReads,
    queryTimeoutMs,
    logger,
  }: { pipelineReads: Pick<FairSlots, 'run'>; queryTimeoutMs: number; logger: Logger },
  workspaceId: string,
  read: (signal: AbortSignal) => Promise<T>,
  deadline: AbortSignal,
): Promise<T | undefined> {
  const signal = AbortSignal.any([deadline, AbortSignal.timeout(queryTimeoutMs * STORE_SHARE)])
  try {
    return await pipelineReads.run(workspaceId, () => read(signal), signal)
  } catch (error) {
    if (deadline.aborted || !(error instanceof TransientError || error instanceof PermanentError)) throw error
    logger.warn(errorFields(error), 'the history of the pipeline could not be read')
    return undefined
  }
}

interface QueueStates {
  readonly readAtMs: number
  readonly surfaces: readonly SurfaceMarks[]
  /** Watermarks of all surfaces of the installation, if not all of the workspace are read. */
  readonly oldest: OldestWatermarks | undefined
  /** Undefined if requests cannot be counted. */
  readonly depths: Readonly<Record<AdmittedQueue, number>> | undefined
  /** Kinds of which something waits. */
  readonly waiting: ReadonlySet<AdmittedQueue>
}

function presentQueue(queue: QueueName, { readAtMs, surfaces, oldest, depths, waiting }: QueueStates): PipelineQueue {
  const sinceMs = Math.min(readAtMs, ...surfaces.map(({ marks }) => marks.unfinishedSinceMs[queue]))
  const workBytes = surfaces.reduce((sum, { marks }) => sum + marks.unfinishedWork[queue], 0)
  const state = { queue, workBytes: Math.round(workBytes), oldestAgeSeconds: (readAtMs - sinceMs) / 1_000 }
  if (!isAdmitted(queue)) return state
  const settledMs = [readAtMs, oldest?.settledBeforeMs[queue] ?? readAtMs]
  const settledBeforeMs = Math.min(...settledMs, ...surfaces.map(({ marks }) => marks.settledBeforeMs[queue]))
  return {
    ...state,
    kind: queue,
    requests: waiting.has(queue) ? (depths?.[queue] ?? null) : 0,
    settledBefore: new Date(settledBeforeMs).toISOString(),
  }
}

/** Loads what has become of the requests of a period. */
async function loadHistory(
  clickhouse: ClickHouseClient,
  period: Period,
  signal: AbortSignal,
): Promise<PipelineHistory> {
  const [rates, refused, letters, purgedLetters] = await Promise.all([
    selectRates(clickhouse, period, signal),
    selectRefusals(clickhouse, period, signal),
    selectLetterCounts(clickhouse, period, signal),
    selectPurgedLetters(clickhouse, period, signal),
  ])
  const { startMs, stepMs, count } = period.steps
  return {
    from: rfc3339FromUnixMs(startMs),
    to: rfc3339FromUnixMs(startMs + count * stepMs),
    stepSeconds: stepMs / 1_000,
    rates: ratesOf(rates, count),
    refused: refused.map(({ kind, status, requests }) => ({
      kind,
      status: Number(status),
      requests: Number(requests),
    })),
    letters: letters.map(({ reason, dead, replayed, discarded }) => ({
      ...{ reason, dead: Number(dead), replayed: Number(replayed), discarded: Number(discarded) },
    })),
    purgedLetters,
  }
}

function ratesOf(rows: readonly RateRow[], steps: number): PipelineHistory['rates'] {
  const kinds = [...new Set(rows.map(({ kind }) => kind))]
  return kinds.map(kind => {
    const own = new Map(rows.filter(row => row.kind === kind).map(row => [row.step, row]))
    const over = (name: 'requests' | 'records' | 'bytes' | 'deadLettered') =>
      Array.from({ length: steps }, (_, step) => Number(own.get(step)?.[name] ?? 0))
    return {
      kind,
      requests: over('requests'),
      records: over('records'),
      bytes: over('bytes'),
      deadLettered: over('deadLettered'),
    }
  })
}
