import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import { TRACE_READ_SETTINGS } from '../span-row.ts'
import { IN_TRACE_IDS } from './trace-filter.ts'

/** Traces whose spans are looked at. */
interface TagSource {
  readonly workspaceId: string
  readonly traceIds: readonly string[]
  readonly limit: number
}

/** Returns the keys of the attributes of spans of these traces, in alphabetical order. */
export async function selectTagKeys(
  client: ClickHouseClient,
  { workspaceId, traceIds, limit }: TagSource,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ key: string }>(client, {
    query: `
      SELECT DISTINCT arrayJoin(mapKeys(attributes)) AS key FROM spans
      WHERE workspace_id = {workspaceId: String} AND ${IN_TRACE_IDS} ORDER BY key LIMIT {limit: UInt32}`,
    params: { workspaceId, traceIds, limit },
    signal,
    settings: TRACE_READ_SETTINGS,
  })
  return rows.map(({ key }) => key)
}

/** Returns the values that an attribute of spans of these traces has, or the names of the spans if it is undefined. */
export async function selectTagValues(
  client: ClickHouseClient,
  { workspaceId, traceIds, limit }: TagSource,
  { key, serviceName }: { readonly key: string | undefined; readonly serviceName: string | undefined },
  signal: AbortSignal,
): Promise<string[]> {
  const conditions = [
    'workspace_id = {workspaceId: String}',
    IN_TRACE_IDS,
    ...(key === undefined ? [] : ['mapContains(attributes, {key: String})']),
    ...(serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
  ]
  const rows = await selectRows<{ value: string }>(client, {
    query: `
      SELECT DISTINCT ${key === undefined ? 'name' : 'attributes[{key: String}]'} AS value FROM spans
      WHERE ${conditions.join(' AND ')} ORDER BY value LIMIT {limit: UInt32}`,
    params: { workspaceId, traceIds, limit, key, serviceName },
    signal,
    settings: TRACE_READ_SETTINGS,
  })
  return rows.map(({ value }) => value)
}

/** Selects services. */
interface ServiceSearch {
  readonly workspaceId: string
  readonly fromNano: bigint
  readonly toNano: bigint
  /** Leaves out spans that arrived on days before this time. */
  readonly arrivedSinceMs?: number
  readonly limit: number
}

/** Returns the services of traces whose newest span of the service started in a time, in alphabetical order. */
export async function selectServices(
  client: ClickHouseClient,
  { workspaceId, fromNano, toNano, arrivedSinceMs = 0, limit }: ServiceSearch,
  signal: AbortSignal,
): Promise<string[]> {
  const fromDay = new Date(arrivedSinceMs).toISOString().slice(0, 10)
  const rows = await selectRows<{ service: string }>(client, {
    query: `
      SELECT DISTINCT toString(service_name) AS service FROM trace_services
      WHERE workspace_id = {workspaceId: String} AND day >= toDate(fromUnixTimestamp64Nano({fromNano: Int64}, 'UTC'))
        AND day >= {fromDay: Date}
        AND last_start_unix_nano >= {fromNano: UInt64} AND last_start_unix_nano < {toNano: UInt64}
      ORDER BY service LIMIT {limit: UInt32}`,
    params: { workspaceId, fromNano: String(fromNano), toNano: String(toNano), fromDay, limit },
    signal,
  })
  return rows.map(({ service }) => service)
}
