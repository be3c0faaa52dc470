/**
 * Since when rows are divided between how many shards. Each server has all of them in its table `shard_maps`, with the number
 * of its own shard, which no later configuration may change. Shards are only added, and rows are never moved.
 */
export interface ShardMap {
  /** Number of the server's own shard, from 0. */
  readonly shard: number
  readonly shards: number
  readonly beginsAtMs: number
}

/** Table with the maps. It is beside the tables with the rows of a shard, and never replicated. */
export const SHARD_MAPS_TABLE = 'shard_maps'

/** Table that reads the columns of `system.parts` which are needed of all shards. */
export const CLUSTER_PARTS_TABLE = 'cluster_parts'

/** Returns the database with the tables that read all shards. Its tables have no rows of their own. */
export function clusterDatabase(database: string): string {
  return `${database}_cluster`
}

/** Reads the maps of a server, as one JSON object a line. */
export const SHARD_MAPS_QUERY = `
  SELECT toUInt32(shard) AS shard, toUInt32(shards) AS shards, toInt64(toUnixTimestamp64Milli(min(begins_at))) AS beginsAtMs
  FROM ${SHARD_MAPS_TABLE} GROUP BY shard, shards ORDER BY shards, shard`

/**
 * A new map begins so long after it was written. Meanwhile every process that reads traces learns of it, so that no trace is
 * read without the shard that workers have begun to fill.
 */
export const MAP_DELAY_MS = 60_000
/** Knowledge of the maps that is older is not relied on. Together with the time between two checks it is below the delay. */
export const MAPS_KNOWN_FOR_MS = 30_000

/**
 * Returns the number of shards that new rows are divided between, or undefined if there is none. A map counts once each of its
 * shards has it, because a process that knows one of these servers must know of the map.
 */
export function activeShards(mapsOfShards: readonly (readonly ShardMap[])[], nowMs: number): number | undefined {
  const candidates = new Set(mapsOfShards.flat().map(({ shards }) => shards))
  const begun = [...candidates].filter(shards =>
    mapsOfShards.slice(0, shards).every(maps => maps.some(map => map.shards === shards && map.beginsAtMs <= nowMs)),
  )
  return begun.length === 0 ? undefined : Math.max(...begun)
}

/** Returns the numbers of shards that stored rows were, or will soon be, divided between. */
export function usedMaps(mapsOfShards: readonly (readonly ShardMap[])[]): number[] {
  return [...new Set(mapsOfShards.flat().map(({ shards }) => shards))]
}
