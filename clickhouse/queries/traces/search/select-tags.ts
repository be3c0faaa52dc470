import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import { attributeOf, KEYS, storedKey, unescapeText } from '../../attributes/packed-attributes.ts'
import { OF_TRACES, TRACE_READ_SETTINGS } from '../span-row.ts'
import { boundTimes, IN_TIME } from './time-range.ts'

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
      SELECT DISTINCT arrayJoin(${KEYS}) AS key FROM (SELECT DISTINCT attribute_keys FROM spans WHERE ${OF_TRACES})
      ORDER BY key LIMIT {limit: UInt32}`,
    params: { workspaceId, traceIds, limit },
    signal,
    settings: TRACE_READ_SETTINGS,
  })
  return rows.map(({ key }) => unescapeText(key))
}

/** Returns the values that an attribute of spans of these traces has, or the names of the spans if it is undefined. */
export async function selectTagValues(
  client: ClickHouseClient,
  { workspaceId, traceIds, limit }: TagSource,
  { key, serviceName }: { readonly key: string | undefined; readonly serviceName: string | undefined },
  signal: AbortSignal,
): Promise<string[]> {
  const attribute = attributeOf('{key: String}')
  const conditions = [
    OF_TRACES,
    ...(key === undefined ? [] : [attribute.exists]),
    ...(serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
  ]
  const rows = await selectRows<{ value: string; isEscaped: boolean }>(client, {
    query: `
      SELECT DISTINCT ${key === undefined ? 'name' : `${attribute.value}`} AS value,
             ${key === undefined ? 'false' : attribute.isEscaped} AS isEscaped FROM spans
      WHERE ${conditions.join(' AND ')} ORDER BY value LIMIT {limit: UInt32}`,
    params: { workspaceId, traceIds, limit, key: key && storedKey(key), serviceName },
    signal,
    settings: TRACE_READ_SETTINGS,
  })
  return [...new Set(rows.map(({ value, isEscaped }) => (isEscaped ? unescapeText(value) : value)))]
}

/** Selects services. */
interface ServiceSearch {
  readonly workspaceId: string
  readonly fromNano: bigint
  readonly toNano: bigint
  /** Leaves out spans that arrived before this time. */
  readonly arrivedSinceMs?: number
  readonly limit: number
  readonly nowMs: number
}

/** Most services are found in this time before the end of a search. */
const RECENT_NANOS = 600_000_000_000n

/** Returns the services of spans that started in a time, or arrived if that was earlier, in alphabetical order. */
export async function selectServices(
  client: ClickHouseClient,
  { workspaceId, fromNano, toNano, arrivedSinceMs = 0, limit, nowMs }: ServiceSearch,
  signal: AbortSignal,
): Promise<string[]> {
  const now = BigInt(nowMs) * 1_000_000n
  const recent = (now < toNano ? now : toNano) - RECENT_NANOS
  const sinceNano = recent > fromNano ? recent : fromNano
  const select = (times: Pick<BoundTimes, 'sinceNano' | 'toNano'>, known: readonly string[]) =>
    selectServicesBut(client, { workspaceId, ...times, arrivedSinceMs, known, limit }, signal)
  const services = await select({ sinceNano, toNano }, [])
  // Granules without another service are left out by the index of services.
  const older = sinceNano === fromNano ? [] : await select({ sinceNano: fromNano, toNano: sinceNano }, services)
  return [...services, ...older].sort().slice(0, limit)
}

interface BoundTimes {
  readonly workspaceId: string
  readonly sinceNano: bigint
  readonly toNano: bigint
  readonly arrivedSinceMs: number
  readonly known: readonly string[]
  readonly limit: number
}

async function selectServicesBut(
  client: ClickHouseClient,
  { workspaceId, sinceNano, toNano, arrivedSinceMs, known, limit }: BoundTimes,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ service: string }>(client, {
    query: `
      SELECT DISTINCT toString(service_name) AS service FROM spans
      WHERE workspace_id = {workspaceId: String} AND ${IN_TIME}
        AND received_at >= fromUnixTimestamp64Milli({arrivedSinceMs: Int64}, 'UTC')
        AND service_name NOT IN {known: Array(String)}
      ORDER BY service LIMIT {limit: UInt32}`,
    params: { workspaceId, ...boundTimes(sinceNano, toNano), arrivedSinceMs, known, limit },
    signal,
  })
  return rows.map(({ service }) => service)
}
