import type { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type FindingKey, selectFinding } from '../../clickhouse/queries/findings/select-finding.ts'
import { selectFindingCounts } from '../../clickhouse/queries/findings/select-finding-counts.ts'
import { selectFindingFrames } from '../../clickhouse/queries/findings/select-finding-frames.ts'
import { type OccurrenceRow, selectLastOccurrences } from '../../clickhouse/queries/findings/select-last-occurrences.ts'
import type { FindingFrame, findingAnswerSchema } from '../../schemas/http/findings/schemas.ts'
import {
  type FindingActivityQuery,
  LAST_OCCURRENCES,
  OCCURRENCE_MESSAGE_MAX,
  type Occurrence,
} from '../../schemas/http/findings/schemas.ts'
import { rfc3339FromUnixMs, rfc3339FromUnixNano } from '../http/format-time.ts'
import { chooseBuckets } from './occurrence-buckets.ts'
import { presentFinding } from './present-finding.ts'

type FindingAnswer = z.infer<typeof findingAnswerSchema>

/**
 * A finding with the frames of its stack, and when and where it occurred; undefined for an unknown one. Throws a
 * TransientError when the signal fires.
 */
export async function loadFinding(
  client: ClickHouseClient,
  key: FindingKey,
  { from, to }: FindingActivityQuery,
  nowMs: number,
  signal: AbortSignal,
): Promise<FindingAnswer['finding'] | undefined> {
  const last = { limit: LAST_OCCURRENCES, messageLength: OCCURRENCE_MESSAGE_MAX }
  const [row, frames, lastRows] = await Promise.all([
    selectFinding(client, key, signal),
    selectFindingFrames(client, key, signal),
    selectLastOccurrences(client, key, last, signal),
  ])
  if (row === undefined) return undefined
  const buckets = chooseBuckets({
    fromMs: from === undefined ? undefined : Date.parse(from),
    toMs: to === undefined ? undefined : Date.parse(to),
    firstMs: Date.parse(row.firstDay),
    nowMs,
  })
  const counts = await selectFindingCounts(client, key, buckets, signal)
  return {
    ...presentFinding(row),
    frames: frames === undefined ? [] : (JSON.parse(frames) as FindingFrame[]),
    occurrences: {
      from: rfc3339FromUnixMs(buckets.from * 1_000),
      to: rfc3339FromUnixMs(buckets.to * 1_000),
      bucketSeconds: buckets.bucketSeconds,
      counts,
    },
    lastOccurrences: lastRows.map(presentOccurrence),
    seenIn: {
      surfaceIds: [...row.surfaceIds],
      serviceNames: [...row.serviceNames],
      serviceVersions: [...row.serviceVersions],
      approximateTraceCount: Number(row.traceCount),
      approximateSessionCount: Number(row.sessionCount),
    },
  }
}

const NO_ID = /^0+$/

function presentOccurrence(row: OccurrenceRow): Occurrence {
  const { traceId, spanId, sessionId, serviceVersion } = row
  return {
    occurredAt: rfc3339FromUnixNano(BigInt(row.occurredUnixNano)),
    receivedAt: rfc3339FromUnixMs(Number(row.receivedMs)),
    ...(NO_ID.test(traceId) ? {} : { traceId }),
    ...(NO_ID.test(spanId) ? {} : { spanId }),
    ...(sessionId === '' ? {} : { sessionId }),
    ...(serviceVersion === '' ? {} : { serviceVersion }),
    message: row.message,
  }
}
