import type { Examined } from '../command-context.ts'
import type { Check, Finding } from './check.ts'
import { checkBackups } from './check-backups.ts'
import { checkBucket } from './check-bucket.ts'
import { checkClickHouse } from './check-clickhouse.ts'
import { checkClocks } from './check-clocks.ts'
import { checkDirectory } from './check-directory.ts'
import { checkStores } from './check-installation.ts'
import { checkQueues } from './check-queues.ts'
import { checkDirectoryServer, checkQueueServers } from './check-redis.ts'
import { checkRetention } from './check-retention.ts'
import { checkSchema } from './check-schema.ts'
import { checkSettings } from './check-settings.ts'

/** Everything that `doctor` looks at, in the order in which it is printed. */
const CHECKS: Readonly<Record<string, (examined: Examined) => Promise<readonly Finding[]>>> = {
  settings: checkSettings,
  'redis of the queues': checkQueueServers,
  'redis of the directory': checkDirectoryServer,
  clickhouse: checkClickHouse,
  schema: checkSchema,
  bucket: checkBucket,
  retention: checkRetention,
  installation: checkStores,
  clocks: checkClocks,
  queues: checkQueues,
  directory: checkDirectory,
  backups: checkBackups,
}

/** Returns the checks of an installation. */
export function checksOf(examined: Examined): Check[] {
  return Object.entries(CHECKS).map(([name, check]) => ({ name, run: () => check(examined) }))
}
