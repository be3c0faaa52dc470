import type { FindingRow } from '../../clickhouse/queries/findings/finding-row.ts'
import type { Finding } from '../../schemas/http/findings/schemas.ts'
import { rfc3339FromUnixNano } from '../http/format-time.ts'
import type { Standing } from './work/standing.ts'

/** Returns a stored finding as responses show it. It is open before a member has worked on it. */
export function presentFinding(row: FindingRow, standing: Standing = { status: 'open' }): Finding {
  return {
    id: row.id,
    surfaceId: row.surfaceId,
    serviceName: row.serviceName,
    type: row.type,
    message: row.message,
    firstSeenAt: rfc3339FromUnixNano(BigInt(row.firstSeenUnixNano)),
    lastSeenAt: rfc3339FromUnixNano(BigInt(row.lastSeenUnixNano)),
    occurrenceCount: Number(row.occurrenceCount),
    ...standing,
  }
}
