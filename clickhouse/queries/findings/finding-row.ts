import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** A finding as the reads of `findings` and `finding_details` select it. 64-bit numbers are decimal text. */
export interface FindingRow extends CountedFinding, FindingDetails {}

/** Columns of `findings`. */
interface CountedFinding {
  readonly id: string
  readonly surfaceId: string
  readonly serviceName: string
  readonly firstSeenUnixNano: string
  readonly lastSeenUnixNano: string
  readonly occurrenceCount: string
}

/** Columns of `finding_details`. */
interface FindingDetails {
  readonly type: string
  readonly message: string
}

/** Selects findings. */
export interface FindingRowsSearch {
  /** On the workspace and the ids of findings. */
  readonly condition: string
  readonly params: Readonly<Record<string, unknown>>
  readonly settings?: ClickHouseSettings
  /** Further columns. Each text begins with a comma. */
  readonly more?: { readonly ofFindings: string; readonly ofDetails: string }
}

/**
 * Returns the findings that a condition selects. Both tables are read at the same time, and grouped by finding_id, because rows
 * of a finding merge only in the background. Texts are cut, because a client chooses their length.
 *
 * An insert fills `findings` and `finding_details` one after the other. A finding without details has `noDetails` until then: a
 * page that left it out would be passed by the next page, and the finding would be missing from the list.
 */
export async function selectFindingRows<C extends object, D extends object>(
  client: ClickHouseClient,
  { condition, params, settings, more }: FindingRowsSearch,
  noDetails: D,
  signal: AbortSignal,
): Promise<(FindingRow & C & D)[]> {
  const read = <T>(query: string) => selectRows<T>(client, { query, params, signal, ...(settings && { settings }) })
  const [counted, described] = await Promise.all([
    read<CountedFinding & C>(`
      SELECT finding_id AS id, any(surface_id) AS surfaceId, leftUTF8(any(findings.service_name), 1024) AS serviceName,
             min(first_seen_unix_nano) AS firstSeenUnixNano, max(last_seen_unix_nano) AS lastSeenUnixNano,
             sum(occurrence_count) AS occurrenceCount${more?.ofFindings ?? ''}
      FROM findings WHERE ${condition} GROUP BY finding_id`),
    read<FindingDetails & D & { readonly id: string }>(`
      SELECT finding_id AS id, leftUTF8(argMaxMerge(finding_details.type), 1024) AS type,
             leftUTF8(argMaxMerge(finding_details.message), 8192) AS message${more?.ofDetails ?? ''}
      FROM finding_details WHERE ${condition} GROUP BY finding_id`),
  ])
  const detailsOf = new Map(described.map(row => [row.id, row]))
  return counted.map(row => ({ ...row, type: '', message: '', ...noDetails, ...detailsOf.get(row.id) }))
}
