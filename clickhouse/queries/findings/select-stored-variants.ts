import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { VARIANT_IDS } from '../attributes/membership.ts'
import { type MembershipRow, membershipsQuery } from './select-memberships.ts'

/** A variant with its finding and its latest exception. 64-bit numbers are decimal text. */
export interface StoredVariant {
  /** 16 bytes as hexadecimal digits. */
  readonly variantId: string
  readonly findingId: string
  readonly rank: string
  readonly occurrenceCount: string
  readonly surfaceId: string
  readonly serviceName: string
  readonly serviceVersion: string
  readonly type: string
  readonly message: string
  readonly fingerprint: string
  readonly stacktrace: string
  /** The frames that source maps resolved last, as JSON, and their rank. Empty and 0 if there are none. */
  readonly frames: string
  readonly framesRank: string
}

/** Chooses variants: those that occurred last, or a page in the order of their ids. */
interface StoredVariantsKey {
  readonly workspaceId: string
  /** The last variant of the page before, or empty. Absent for those that occurred last. */
  readonly after?: string
  readonly limit: number
}

/** A variant, without its finding and its latest exception. */
type VariantRow = Pick<StoredVariant, 'variantId' | 'occurrenceCount' | 'surfaceId' | 'serviceName' | 'serviceVersion'>

const OWN = 'workspace_id = {workspaceId: String}'
const OF_PAGE = `${OWN} AND variant_id IN (${VARIANT_IDS})`

/** Returns variants with their latest exceptions, and whether there are no more of them. */
export async function selectStoredVariants(
  client: ClickHouseClient,
  { workspaceId, after, limit }: StoredVariantsKey,
  signal: AbortSignal,
): Promise<{ readonly variants: readonly StoredVariant[]; readonly last: string | undefined }> {
  const page = await selectRows<VariantRow>(client, {
    query: `
      SELECT lower(hex(variant_id)) AS variantId, sum(occurrence_count) AS occurrenceCount, any(surface_id) AS surfaceId,
             any(service_name) AS serviceName, any(service_version) AS serviceVersion
      FROM findings
      WHERE ${OWN} ${after ? 'AND variant_id > toFixedString(unhex({after: String}), 16)' : ''}
      GROUP BY variant_id HAVING occurrenceCount > 0
      ORDER BY ${after === undefined ? 'max(latest.stored_at) DESC' : 'variant_id'} LIMIT {limit: UInt32}`,
    params: { workspaceId, after: after ?? '', limit },
    signal,
  })
  const last = page.length < limit ? undefined : page.at(-1)?.variantId
  const variantIds = page.map(({ variantId }) => variantId)
  if (variantIds.length === 0) return { variants: [], last }
  const [memberships, exceptions, frames] = await Promise.all([
    selectRows<MembershipRow>(client, { query: membershipsQuery(OWN), params: { workspaceId, variantIds }, signal }),
    selectLatestExceptions(client, { workspaceId, variantIds }, signal),
    selectLatestFrames(client, { workspaceId, variantIds }, signal),
  ])
  const memberOf = new Map(memberships.map(row => [row.variantId, row]))
  const exceptionOf = new Map(exceptions.map(row => [row.variantId, row]))
  const framesOf = new Map(frames.map(row => [row.variantId, row]))
  const variants = page.flatMap(row => {
    // Its exceptions may have been deleted since.
    const exception = exceptionOf.get(row.variantId)
    const member = memberOf.get(row.variantId)
    const { frames: resolved = '', framesRank = '0' } = framesOf.get(row.variantId) ?? {}
    if (exception === undefined || member === undefined) return []
    return [{ ...row, ...member, ...exception, frames: resolved, framesRank }]
  })
  return { variants, last }
}

interface OfVariants {
  readonly workspaceId: string
  readonly variantIds: readonly string[]
}

type LatestException = Pick<StoredVariant, 'variantId' | 'type' | 'message' | 'fingerprint' | 'stacktrace'>

/** Returns the exception of each variant that was received last. Texts are read of these only. */
function selectLatestExceptions(client: ClickHouseClient, params: OfVariants, signal: AbortSignal) {
  return selectRows<LatestException>(client, {
    query: `
      SELECT lower(hex(variant_id)) AS variantId, type, message, fingerprint, stacktrace
      FROM exceptions
      WHERE ${OF_PAGE} AND (variant_id, received_at) IN (
        SELECT variant_id, max(received_at) FROM exceptions WHERE ${OF_PAGE} GROUP BY variant_id)
      ORDER BY variant_id, occurred_at_unix_nano DESC, message
      LIMIT 1 BY variant_id`,
    params: { ...params },
    signal,
    settings: { max_query_size: '1048576' },
  })
}

type LatestFrames = Pick<StoredVariant, 'variantId' | 'frames' | 'framesRank'>

/** Returns the frames of each variant that source maps resolved last. */
export async function selectLatestFrames(client: ClickHouseClient, params: OfVariants, signal: AbortSignal) {
  const { workspaceId, variantIds } = params
  if (variantIds.length === 0) return []
  return selectRows<LatestFrames>(client, {
    query: `
      SELECT lower(hex(variant_id)) AS variantId, argMax(finding_frames.frames, rank) AS frames, max(rank) AS framesRank
      FROM finding_frames WHERE ${OF_PAGE} AND resolved_frame_count > 0
      GROUP BY variant_id`,
    params: { workspaceId, variantIds },
    signal,
    settings: { max_query_size: '1048576' },
  })
}
