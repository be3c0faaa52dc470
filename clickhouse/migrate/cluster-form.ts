import type { ConfiguredCluster } from '../connect.ts'

/** A server of a cluster. */
export interface ServerPlace {
  /** Numbers from 0, as in CLICKHOUSE_URL. */
  readonly shard: number
  readonly replica: number
}

const CREATES_TABLE = /^CREATE TABLE\b/i
const ENGINE = /\bENGINE = (\w*MergeTree)\b(?:\(([^)]*)\))?/
/** Statements that change rows. One replica of a shard runs them for all. */
const CHANGES_ROWS = /^(?:INSERT\b|ALTER TABLE \S+ (?:UPDATE|DELETE|MATERIALIZE)\b)/i

/**
 * Returns the form of a statement of a migration for a server of a cluster, or undefined if the server has nothing to do. Without
 * replication it is the statement itself: the tables of a shard are those of a single server. Migrations are applied to each server
 * in turn, because a cluster may have no queue for `ON CLUSTER`.
 */
export function clusterForm(
  statement: string,
  { name, isReplicated }: Pick<ConfiguredCluster, 'name' | 'isReplicated'>,
  { replica }: ServerPlace,
): string | undefined {
  if (!isReplicated) return statement
  if (replica > 0 && CHANGES_ROWS.test(statement)) return undefined
  if (!CREATES_TABLE.test(statement)) return statement
  return statement.replace(ENGINE, (_, engine: string, parameters: string | undefined) => {
    const path = `'/clickhouse/tables/${name}/{shard}/{database}/{table}'`
    return `ENGINE = Replicated${engine}(${[path, "'{replica}'", ...(parameters ? [parameters] : [])].join(', ')})`
  })
}
