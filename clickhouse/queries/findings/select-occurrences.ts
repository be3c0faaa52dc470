import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { ONE_FINDING_SETTINGS } from './findings-settings.ts'
import { BUCKET_MS, type OccurrenceRange, ofOccurrences, selectStartOfNewest } from './select-newest.ts'

/** Where an occurrence is in the list of a finding. 64-bit numbers are decimal text. */
export interface OccurrenceKey {
  readonly receivedMs: string
  readonly occurredUnixNano: string
  /** Distinguishes occurrences with the same times. */
  readonly tie: string
}

/** An occurrence of a finding. Absent texts are empty, and absent ids are zeros. */
export interface ListedOccurrenceRow extends OccurrenceKey {
  readonly traceId: string
  readonly spanId: string
  readonly sessionId: string
  readonly surfaceId: string
  readonly serviceVersion: string
  readonly message: string
  readonly browser: string
  readonly system: string
  readonly route: string
  readonly environment: string
  readonly host: string
}

/** A page of occurrences. */
interface OccurrencesPage extends OccurrenceRange {
  readonly limit: number
  /** Characters of a message. */
  readonly messageLength: number
  /** The last entry of the page before, and how many entries with the same key were shown: occurrences can be equal. */
  readonly after: { readonly key: OccurrenceKey; readonly shown: number } | undefined
}

/**
 * Returns a page of the occurrences of a finding, the last received first. Only the five-minute buckets that have enough of
 * them are read. If some of these were deleted, all are.
 */
export async function selectOccurrences(
  client: ClickHouseClient,
  page: OccurrencesPage,
  signal: AbortSignal,
): Promise<ListedOccurrenceRow[]> {
  const { fromMs, limit, after } = page
  const toMs = after === undefined ? page.toMs : Math.min(page.toMs, Number(after.key.receivedMs) + 1)
  // The bucket of the last entry has occurrences that were shown.
  const countedTo = after === undefined ? toMs : Math.floor(Number(after.key.receivedMs) / BUCKET_MS) * BUCKET_MS
  const startMs = await selectStartOfNewest(client, { ...page, toMs: Math.max(countedTo, fromMs) }, limit, signal)
  const found = await selectPage(
    client,
    { ...page, fromMs: Math.max(Math.min(startMs, countedTo), fromMs), toMs },
    signal,
  )
  if (found.length === limit || startMs <= fromMs) return found
  return selectPage(client, { ...page, toMs }, signal)
}

function selectPage(
  client: ClickHouseClient,
  { after, ...page }: OccurrencesPage,
  signal: AbortSignal,
): Promise<ListedOccurrenceRow[]> {
  const isAfter = `(toUnixTimestamp64Milli(received_at), occurred_at_unix_nano, tie)
    <= ({receivedMs: Int64}, {occurredUnixNano: UInt64}, {tie: UInt64})`
  return selectRows<ListedOccurrenceRow>(client, {
    query: `
      SELECT toUnixTimestamp64Milli(received_at) AS receivedMs, occurred_at_unix_nano AS occurredUnixNano,
             cityHash64(trace_id, span_id, variant_id, session_id) AS tie, lower(hex(trace_id)) AS traceId, lower(hex(span_id)) AS spanId,
             session_id AS sessionId, surface_id AS surfaceId, leftUTF8(service_version, 256) AS serviceVersion,
             leftUTF8(exceptions.message, {messageLength: UInt32}) AS message, browser, system, route, environment, host
      FROM exceptions
      WHERE ${ofOccurrences(page)} ${after ? `AND ${isAfter}` : ''}
      ORDER BY received_at DESC, occurred_at_unix_nano DESC, tie DESC, _block_number DESC
      LIMIT {limit: UInt32} OFFSET {shown: UInt32}`,
    params: { ...page, shown: after?.shown ?? 0, ...after?.key },
    signal,
    // Texts are read of the rows that the order chooses.
    settings: { ...ONE_FINDING_SETTINGS, query_plan_optimize_lazy_materialization: 1 },
  })
}
