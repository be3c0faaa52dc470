import { HttpStatusColumn } from '../../clickhouse/tables/http-status-column.ts'
import { HTTP_STATUS_CODE_MAX } from '../../schemas/http/traces/schemas.ts'

/** Returns the status of HTTP that a response shows for a stored one, or undefined if it shows none. */
export function shownHttpStatus(stored: number): number | undefined {
  if (stored === HttpStatusColumn.zero) return 0
  return stored !== HttpStatusColumn.none && stored <= HTTP_STATUS_CODE_MAX ? stored : undefined
}
