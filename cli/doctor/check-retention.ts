import { type ClickHouseClient, serversOf } from '../../clickhouse/client.ts'
import { selectRows } from '../../clickhouse/select.ts'
import type { Expiration } from '../../shared/object-store/types.ts'
import type { Examined } from '../command-context.ts'
import { type Finding, found } from './check.ts'

const READ_TIMEOUT_MS = 10_000
/** Objects whose rows expire. The store deletes them, because workers do it only where a workspace has a shorter retention. */
const EXPIRING = ['replays/', 'dead-letters/']
/** Objects that are in use at any age. */
const KEPT = ['source-maps/', 'releases/', 'directory-backups/', 'installation.json']
const RULES = 'deploy/object-store/README.md'

/** Compares RETENTION_DAYS with the days for which ClickHouse and the bucket keep what is stored. */
export async function checkRetention({ clickhouse, objects, config }: Examined): Promise<Finding[]> {
  const days = config.RETENTION_DAYS
  const ofServers = serversOf(clickhouse).map(async ({ client, name }) => {
    const findings = compareTables(await keptDays(client, config.CLICKHOUSE_DATABASE), days)
    return findings.map(({ result, text }) => ({ result, text: name === undefined ? text : `${name}: ${text}` }))
  })
  const findings = (
    await Promise.all([...ofServers, objects.expirations().then(rules => compareRules(rules, days))])
  ).flat()
  return findings.length > 0 ? findings : [found.ok(`rows are kept for ${days} days`)]
}

/** Days for which a table keeps a row after its day. */
interface KeptDays {
  readonly table: string
  readonly days: number
}

/** A table that keeps rows longer than others adds the days to those of the retention, which stand first. */
async function keptDays(client: ClickHouseClient, database: string): Promise<KeptDays[]> {
  const rows = await selectRows<{ name: string; days: string }>(client, {
    query: `SELECT name, extract(engine_full, ' TTL .*?toIntervalDay\\\\((\\\\d+)\\\\)') AS days
            FROM system.tables
            WHERE database = {database: String} AND endsWith(engine, 'MergeTree') AND days != '' ORDER BY name`,
    params: { database },
    signal: AbortSignal.timeout(READ_TIMEOUT_MS),
  })
  return rows.map(({ name, days }) => ({ table: name, days: Number(days) }))
}

function compareTables(tables: readonly KeptDays[], retentionDays: number): Finding[] {
  const others = tables.filter(({ days }) => days !== retentionDays)
  const [first] = others
  if (first === undefined) return []
  const more = others.length > 1 ? ` (and ${others.length - 1} more)` : ''
  return [
    found.fault(
      `RETENTION_DAYS is ${retentionDays}, but the table ${first.table} keeps rows for ${first.days} days${more}: ` +
        'docs/operate/requirements.md#retention',
    ),
  ]
}

/** Compares the rules of a bucket with the retention. A store that does not show them has no finding. */
export function compareRules(rules: readonly Expiration[] | undefined, retentionDays: number): Finding[] {
  if (rules === undefined) return []
  const daysOf = (prefix: string) => {
    const days = rules.filter(rule => prefix.startsWith(rule.prefix)).map(rule => rule.days)
    return days.length === 0 ? undefined : Math.min(...days)
  }
  const wanted = retentionDays + 1
  const expiring = EXPIRING.flatMap(prefix => {
    const days = daysOf(prefix)
    if (days === wanted) return []
    if (days === undefined)
      return [found.warning(`the bucket has no rule that deletes ${prefix} after ${wanted} days: ${RULES}`)]
    const text = `the bucket deletes ${prefix} after ${days} days instead of ${wanted} (RETENTION_DAYS + 1): ${RULES}`
    // Rows would name objects that are gone.
    return [days < wanted ? found.fault(text) : found.warning(text)]
  })
  const kept = KEPT.flatMap(prefix => {
    const days = daysOf(prefix)
    if (days === undefined) return []
    return [found.fault(`the bucket deletes ${prefix} after ${days} days, which is needed at any age: ${RULES}`)]
  })
  return [...expiring, ...kept]
}
