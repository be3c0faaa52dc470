import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import { attributeOf, KEYS, storedKey, unescapeText } from '../../attributes/packed-attributes.ts'
import { OF_TRACES, TRACE_READ_SETTINGS } from '../span-row.ts'
import { boundTimes, IN_TIME } from './time-range.ts'

/** Traces whose spans are looked at. */
interface TagSource {
  readonly workspaceId: string
  readonly traceIds: readonly string[]
  /** Leaves out spans of other services. */
  readonly serviceName: string | undefined
  /** Leaves out texts that do not contain this, in upper or lower case. */
  readonly contains?: string | undefined
  readonly limit: number
}

const containing = (text: string, contains: string | undefined) =>
  contains ? `positionCaseInsensitiveUTF8(${text}, {contains: String}) > 0` : 'true'

/** Returns the keys of the attributes of spans of these traces, in alphabetical order. */
export async function selectTagKeys(
  client: ClickHouseClient,
  { contains, ...source }: TagSource,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ key: string }>(client, {
    query: `
      SELECT DISTINCT arrayJoin(${KEYS}) AS key FROM (SELECT DISTINCT attribute_keys FROM spans WHERE ${ofService(source)})
      WHERE ${containing('key', contains)} ORDER BY key LIMIT {limit: UInt32}`,
    params: { ...source, contains },
    signal,
    settings: TRACE_READ_SETTINGS,
  })
  return rows.map(({ key }) => unescapeText(key))
}

/** Returns the values that an attribute of spans of these traces has, or the names of the spans if it is undefined. */
export async function selectTagValues(
  client: ClickHouseClient,
  { key, contains, ...source }: TagSource & { readonly key: string | undefined },
  signal: AbortSignal,
): Promise<string[]> {
  const attribute = attributeOf('{key: String}')
  const conditions = [
    ofService(source),
    ...(key === undefined ? [] : [attribute.exists]),
    containing('value', contains),
  ]
  const rows = await selectRows<{ value: string; isEscaped: boolean }>(client, {
    query: `
      SELECT DISTINCT ${key === undefined ? 'name' : `${attribute.value}`} AS value,
             ${key === undefined ? 'false' : attribute.isEscaped} AS isEscaped FROM spans
      WHERE ${conditions.join(' AND ')} ORDER BY value LIMIT {limit: UInt32}`,
    params: { ...source, contains, key: key && storedKey(key) },
    signal,
    settings: TRACE_READ_SETTINGS,
  })
  return [...new Set(rows.map(({ value, isEscaped }) => (isEscaped ? unescapeText(value) : value)))]
}

function ofService({ serviceName }: Pick<TagSource, 'serviceName'>): string {
  return serviceName === undefined ? OF_TRACES : `${OF_TRACES} AND service_name = {serviceName: String}`
}

/** Selects services. */
interface ServiceSearch {
  readonly workspaceId: string
  /** Leaves out services whose name does not contain this, in upper or lower case. */
  readonly contains?: string | undefined
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
  { workspaceId, fromNano, toNano, arrivedSinceMs = 0, contains, limit, nowMs }: ServiceSearch,
  signal: AbortSignal,
): Promise<string[]> {
  const now = BigInt(nowMs) * 1_000_000n
  const recent = (now < toNano ? now : toNano) - RECENT_NANOS
  const sinceNano = recent > fromNano ? recent : fromNano
  const select = (times: Pick<BoundTimes, 'sinceNano' | 'toNano'>, known: readonly string[]) =>
    selectServicesBut(client, { workspaceId, ...times, arrivedSinceMs, known, contains, limit }, signal)
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
  readonly contains: string | undefined
  readonly limit: number
}

async function selectServicesBut(
  client: ClickHouseClient,
  { workspaceId, sinceNano, toNano, arrivedSinceMs, known, contains, limit }: BoundTimes,
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ service: string }>(client, {
    query: `
      SELECT DISTINCT toString(service_name) AS service FROM spans
      WHERE workspace_id = {workspaceId: String} AND ${IN_TIME}
        AND received_at >= fromUnixTimestamp64Milli({arrivedSinceMs: Int64}, 'UTC')
        AND service_name NOT IN {known: Array(String)} AND ${containing('service_name', contains)}
      ORDER BY service LIMIT {limit: UInt32}`,
    params: { workspaceId, ...boundTimes(sinceNano, toNano), arrivedSinceMs, known, contains, limit },
    signal,
  })
  return rows.map(({ service }) => service)
}
