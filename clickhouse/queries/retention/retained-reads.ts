import { type ClickHouseSettings, SettingsMap } from '@clickhouse/client'
import type { Retention } from '../../../schemas/records/directory.ts'
import { firstKeptDay, keptDays } from '../../../shared/runtime/retention.ts'
import type { ClickHouseClient } from '../../client.ts'
import { CLUSTER_PARTS_TABLE } from '../../cluster/shard-maps.ts'
import type { BoundQuery, Reads } from '../../read-connection.ts'
import { RETAINED_TABLES } from './retained-tables.ts'

/** Dependencies of {@link retainedReads}. */
interface RetainedReadsDeps {
  /** Returns the retention of a workspace; undefined if everything has the default. */
  readonly retentionOf: (workspaceId: string) => Promise<Retention | undefined>
  readonly installationDays: number
  readonly now: () => number
}

/**
 * Returns a client whose reads find no row that is past the retention of the workspace, also before the sweep has deleted
 * it. ClickHouse adds the conditions to each table of a query, and does not open the days that they exclude. A query
 * names its workspace in the parameter `workspaceId`; one without it is refused, unless it reads a system table. The
 * reads of the official client, which would show everything, are refused too.
 */
export function retainedReads(client: ClickHouseClient, deps: RetainedReadsDeps): ClickHouseClient {
  const reads: Reads = {
    async read(query, onChunk) {
      const filter = await filterOf(query, deps, client.shards?.database)
      return client.reads.read({ ...query, settings: { ...query.settings, ...filter } }, onChunk)
    },
  }
  return new Proxy(client, {
    get(target, name) {
      if (name === 'reads') return reads
      if (name === 'query' || name === 'exec')
        throw new TypeError('a read of the API goes through clickhouse/select.ts')
      const member = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

async function filterOf(
  { query, params }: BoundQuery,
  deps: RetainedReadsDeps,
  shardDatabase: string | undefined,
): Promise<ClickHouseSettings | undefined> {
  const { workspaceId } = params
  if (typeof workspaceId !== 'string') {
    if (query.includes('FROM system.') || query.includes(`FROM ${CLUSTER_PARTS_TABLE} `)) return undefined
    throw new TypeError('a read has no parameter workspaceId')
  }
  return retentionFilter(await deps.retentionOf(workspaceId), deps.installationDays, deps.now(), shardDatabase)
}

/**
 * Returns the settings that hide rows past their retention. Tables with the default have none: their TTL drops whole days. In
 * a cluster the conditions also name the tables of each shard.
 */
function retentionFilter(
  retention: Retention | undefined,
  installationDays: number,
  nowMs: number,
  shardDatabase?: string,
): ClickHouseSettings {
  const conditions: Record<string, string> = {}
  for (const { table, kind, day } of retention === undefined ? [] : RETAINED_TABLES) {
    const days = keptDays(retention, kind, installationDays)
    if (days >= installationDays) continue
    const condition = `${day} >= toDate(${firstKeptDay(days, nowMs)})`
    conditions[table] = condition
    if (shardDatabase !== undefined) conditions[`${shardDatabase}.${table}`] = condition
  }
  return Object.keys(conditions).length === 0 ? {} : { additional_table_filters: SettingsMap.from(conditions) }
}
