import { serversOf } from '../../clickhouse/client.ts'
import { adviceFor, serverDifferences } from '../../clickhouse/migrate/compare-schema.ts'
import { MIGRATIONS, readMigrations } from '../../clickhouse/migrate/migration-files.ts'
import type { Examined } from '../command-context.ts'
import { type Finding, found } from './check.ts'

/** Compares the schema of each server of ClickHouse with the one that the migrations make. */
export async function checkSchema({ clickhouse, config }: Examined): Promise<Finding[]> {
  const migrations = await readMigrations(MIGRATIONS)
  const place = { database: config.CLICKHOUSE_DATABASE, isCluster: clickhouse.shards !== undefined }
  const ofServers = serversOf(clickhouse).map(async server => {
    const differences = await serverDifferences(server, place, migrations)
    const prefix = server.name === undefined ? '' : `${server.name}: `
    return differences.map(difference => found.fault(prefix + adviceFor(difference)))
  })
  const findings = (await Promise.all(ofServers)).flat()
  return findings.length > 0 ? findings : [found.ok(`as the ${migrations.length} migrations make it`)]
}
