import { attributeHint } from '../../../clickhouse/queries/attributes/attribute-condition.ts'

/** Returns a query of the newest traces of a workspace that meet a condition on `trace_services`. */
export const newestTraces = (workspaceId: string, limit: number, condition: string) => `
  SELECT trace_id FROM trace_services WHERE workspace_id = '${workspaceId}' AND ${condition}
  ORDER BY last_start_unix_nano DESC LIMIT 1 BY trace_id LIMIT ${limit}`

/** Returns a query of traces with an attribute, by its index, that also meet a condition on `spans`. */
export const tracesWithAttribute = (
  workspaceId: string,
  limit: number,
  key: string,
  value: string,
  condition: string = 'true',
) => `
  SELECT trace_id FROM spans WHERE workspace_id = '${workspaceId}' AND ${attributeHint(`'${key}'`, `'${value}'`)}
    AND attributes['${key}'] = '${value}' AND ${condition}
  LIMIT 1 BY trace_id LIMIT ${limit}`

/** Returns a query of what a list shows of the traces that another query selects. */
export const totalsOfTraces = (workspaceId: string, traces: string) => `
  SELECT lower(hex(trace_id)), min(start_time_unix_nano), max(end_time_unix_nano), uniqExact(span_id),
    uniqExactIf(span_id, status_code = 2), groupUniqArray(20)(toString(service_name)), argMin(name, start_time_unix_nano)
  FROM spans WHERE workspace_id = '${workspaceId}' AND trace_id IN (${traces}) GROUP BY trace_id`
