import type { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { FindingKey } from '../../clickhouse/queries/attributes/membership.ts'
import type { FindingRow } from '../../clickhouse/queries/findings/finding-row.ts'
import {
  type CountedFindingRow,
  type OccurrenceRow,
  selectFinding,
  selectFindingExtent,
  selectFindingFrames,
  selectLastOccurrences,
} from '../../clickhouse/queries/findings/select-finding.ts'
import {
  type Buckets,
  OCCURRED_COUNT_MAX,
  selectFindingCounts,
  selectOccurredCounts,
} from '../../clickhouse/queries/findings/select-finding-counts.ts'
import { selectLatestFrames } from '../../clickhouse/queries/findings/select-stored-variants.ts'
import type { Standing } from '../../findings/standing.ts'
import {
  type Finding,
  type FindingActivityQuery,
  type findingAnswerSchema,
  LAST_OCCURRENCES,
  OCCURRENCE_BUCKETS_MAX,
  OCCURRENCE_MESSAGE_MAX,
  type Occurrence,
} from '../../schemas/http/findings/schemas.ts'
import type { Release } from '../../schemas/records/directory.ts'
import type { FindingRule } from '../../schemas/records/finding-rules.ts'
import { DAY_S, HOUR_MS, HOUR_S } from '../../schemas/units.ts'
import { readTopFrame } from '../../shared/stacks/top-frame.ts'
import type { CurrentFinding } from '../http/current-finding.ts'
import { rfc3339FromUnixMs, rfc3339FromUnixNano } from '../http/format-time.ts'
import { explainException, titlesBy } from './explain-grouping.ts'
import { presentStack } from './present-stack.ts'
import { sourceLinks } from './source-link.ts'

type FindingAnswer = z.infer<typeof findingAnswerSchema>

type ReleaseOf = (slug: string) => Promise<Release | undefined>

/** What a finding is shown with besides what is stored of it. */
interface LoadFindingDeps {
  readonly releaseOf: ReleaseOf
  readonly rules: Promise<readonly FindingRule[]>
}

/**
 * Loads a finding with its stack frames, and with when and where it occurred. Returns undefined for an unknown finding.
 * `releaseOf` looks up the release of its frames, and `rules` are those of the workspace. Throws a TransientError when the signal
 * fires.
 */
export async function loadFinding(
  client: ClickHouseClient,
  finding: CurrentFinding,
  query: FindingActivityQuery,
  nowMs: number,
  abortSignal: AbortSignal,
  { releaseOf, rules }: LoadFindingDeps,
): Promise<FindingAnswer['finding'] | undefined> {
  const { workspaceId, findingId, findingIds, merges } = finding
  const { times } = query
  const counted = selectFinding(client, finding, abortSignal)
  const mapped = loadFrames(client, finding, abortSignal, releaseOf)
  const activity = counted.then(async row => {
    if (row === undefined) return undefined
    const isOccurred = times === 'occurred' && Number(row.occurrenceCount) <= OCCURRED_COUNT_MAX
    const buckets = bucketsOf(query, row, isOccurred, nowMs)
    const last = { since: dayOfLast(row), limit: LAST_OCCURRENCES, messageLength: OCCURRENCE_MESSAGE_MAX }
    const [counts, lastRows] = await Promise.all([
      isOccurred
        ? selectOccurredCounts(client, { workspaceId, findingIds: [findingId], merges }, buckets, abortSignal).then(
            ([ofFinding = []]) => ofFinding,
          )
        : selectFindingCounts(client, finding, buckets, abortSignal),
      selectLastOccurrences(client, finding, last, abortSignal),
    ])
    // A finding without any frames has none of its last occurrence.
    const ofLast = (await mapped) === undefined ? [] : lastRows.slice(0, 1).map(row => row.variantId)
    const [latest] = await selectLatestFrames(client, { workspaceId, variantIds: ofLast }, abortSignal)
    return { buckets, counts, lastRows, isOccurred, latestFrames: latest?.frames ?? '' }
  })
  const [row, ordered, active, extent, frames] = await Promise.all([
    counted,
    rules,
    activity,
    selectFindingExtent(client, finding, abortSignal),
    mapped,
  ])
  if (row === undefined || active === undefined) return undefined
  const { buckets, counts, lastRows, isOccurred, latestFrames } = active
  const { type = '', wholeMessage: message = '', stacktrace = '', ...latest } = lastRows[0] ?? {}
  const { surfaceId, serviceName } = row
  const exception = { workspaceId, surfaceId, serviceName, ...latest, type, message, stacktrace, frames: latestFrames }
  const title = titlesBy(workspaceId, ordered)({ ...row, type, message })
  const { topFrame, grouping } = explainException(exception, ordered)
  return {
    ...{ ...presentFinding({ ...row, type, message, topFrame }, undefined, title), grouping },
    ...presentStack(stacktrace, frames),
    firstReceivedAt: rfc3339FromUnixMs(Number(row.firstReceivedMs)),
    lastReceivedAt: rfc3339FromUnixMs(Number(row.lastReceivedMs)),
    occurrences: { ...presentBuckets(buckets), counts, ...(times && { times: isOccurred ? 'occurred' : 'received' }) },
    ...(findingIds.length > 1 && { mergedFindingIds: findingIds.slice(1) }),
    lastOccurrences: lastRows.map(presentOccurrence),
    seenIn: {
      ...{ surfaceIds: [...row.surfaceIds], serviceNames: [...row.serviceNames] },
      serviceVersions: [...row.serviceVersions],
      approximateTraceCount: Number(extent.traceCount),
      approximateSessionCount: Number(extent.sessionCount),
    },
  }
}

/** Returns the buckets of a finding, by when its occurrences occurred or were received. */
function bucketsOf(
  { from, to }: FindingActivityQuery,
  { firstDay, firstSeenUnixNano }: CountedFindingRow,
  isOccurred: boolean,
  nowMs: number,
): Buckets {
  const fromMs = from === undefined ? undefined : Date.parse(from)
  const toMs = to === undefined ? undefined : Date.parse(to)
  if (!isOccurred) return chooseBuckets({ fromMs, toMs, firstMs: Date.parse(firstDay), nowMs })
  const firstMs = Number(BigInt(firstSeenUnixNano) / 1_000_000n)
  // An hour at least, so that a finding that is new has more than one bucket.
  return chooseBuckets({ fromMs: fromMs ?? Math.min(firstMs, (toMs ?? nowMs) - HOUR_MS), toMs, firstMs, nowMs })
}

function presentBuckets({ from, to, bucketSeconds }: Buckets) {
  return { from: rfc3339FromUnixMs(from * 1_000), to: rfc3339FromUnixMs(to * 1_000), bucketSeconds }
}

/** Loads the frames that source maps have resolved, and the links to their sources. */
async function loadFrames(client: ClickHouseClient, key: FindingKey, abortSignal: AbortSignal, releaseOf: ReleaseOf) {
  const stored = await selectFindingFrames(client, key, abortSignal)
  return stored && { ...stored, linkOf: sourceLinks(await releaseOf(stored.releaseSlug)) }
}

/** Returns the latest day since which there are as many occurrences as are shown, or the first day. */
function dayOfLast({ firstDay, days: [days, counts] }: CountedFindingRow): string {
  let missing = LAST_OCCURRENCES
  for (let i = days.length - 1; i >= 0; i--) {
    missing -= Number(counts[i])
    if (missing <= 0) return days[i] as string
  }
  return firstDay
}

const ABSENT_ID = /^0+$/

/** The columns that an occurrence is presented from. */
type PresentedRow = Pick<
  OccurrenceRow,
  'occurredUnixNano' | 'receivedMs' | 'traceId' | 'spanId' | 'sessionId' | 'serviceVersion' | 'message'
>

/** Returns a stored occurrence as responses show it. */
export function presentOccurrence(row: PresentedRow): Occurrence {
  const { traceId, spanId, sessionId, serviceVersion } = row
  return {
    occurredAt: rfc3339FromUnixNano(BigInt(row.occurredUnixNano)),
    receivedAt: rfc3339FromUnixMs(Number(row.receivedMs)),
    ...(ABSENT_ID.test(traceId) ? {} : { traceId }),
    ...(ABSENT_ID.test(spanId) ? {} : { spanId }),
    ...(sessionId === '' ? {} : { sessionId }),
    ...(serviceVersion === '' ? {} : { serviceVersion }),
    message: row.message,
  }
}

/** Lengths of buckets. Each divides a day, and is a multiple of the five minutes by which occurrences are counted. */
const BUCKET_SECONDS = [300, 900, 1_800, HOUR_S, 7_200, 10_800, 21_600, 43_200, DAY_S] as const

/** The time for which a request wants counts. */
export interface RequestedTime {
  readonly fromMs: number | undefined
  readonly toMs: number | undefined
  /** The time of the first retained occurrence of the finding. */
  readonly firstMs: number
  readonly nowMs: number
}

/**
 * Chooses the smallest buckets that cover the requested time with at most `bucketsMax` of them. If no time is
 * requested, the buckets cover all that is retained, and are at least an hour long. If even days are too many, the beginning
 * of the time is left out.
 */
export function chooseBuckets(
  { fromMs, toMs, firstMs, nowMs }: RequestedTime,
  bucketsMax = OCCURRENCE_BUCKETS_MAX,
): Buckets {
  const end = inRange((toMs ?? Math.max(nowMs, fromMs ?? nowMs)) / 1_000)
  const start = Math.min(inRange((fromMs ?? firstMs) / 1_000), end)
  const least = fromMs === undefined && toMs === undefined ? HOUR_S : 0
  for (const bucketSeconds of BUCKET_SECONDS) {
    if (bucketSeconds < least) continue
    const from = Math.floor(start / bucketSeconds) * bucketSeconds
    const to = Math.ceil(end / bucketSeconds) * bucketSeconds
    if ((to - from) / bucketSeconds <= bucketsMax) return { from, to, bucketSeconds }
  }
  const to = Math.ceil(end / DAY_S) * DAY_S
  return { from: to - bucketsMax * DAY_S, to, bucketSeconds: DAY_S }
}

/** Limits Unix seconds to the range of ClickHouse's DateTime, with a few days left for rounding. */
function inRange(seconds: number): number {
  return Math.min(Math.max(seconds, 0), 2 ** 32 - 10 * DAY_S)
}

/** Returns a stored finding as responses show it. It is open before a member has worked on it. */
export function presentFinding(row: FindingRow, standing: Standing = { status: 'open' }, title?: string): Finding {
  const topFrame = readTopFrame(row.topFrame)
  return {
    id: row.id,
    surfaceId: row.surfaceId,
    serviceName: row.serviceName,
    type: row.type,
    message: row.message,
    ...(title !== undefined && { title }),
    ...(topFrame !== undefined && { topFrame }),
    firstSeenAt: rfc3339FromUnixNano(BigInt(row.firstSeenUnixNano)),
    lastSeenAt: rfc3339FromUnixNano(BigInt(row.lastSeenUnixNano)),
    occurrenceCount: Number(row.occurrenceCount),
    ...standing,
  }
}
