import type { Examined } from '../command-context.ts'
import { type Finding, found } from './check.ts'

/** Addresses whose default is a server on this host. */
const LOCAL_DEFAULTS = ['REDIS_URL', 'CLICKHOUSE_URL'] as const

/** Examines settings that are valid each, and wrong or doubtful together. Invalid ones end the command before. */
export async function checkSettings({ config, env }: Examined): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const name of LOCAL_DEFAULTS) {
    if (!env[name] && !env[`${name}_FILE`]) {
      findings.push(found.warning(`${name} is not set, so its default is used: ${config[name]}`))
    }
  }
  if (config.REDIS_URL === config.DIRECTORY_REDIS_URL) {
    findings.push(
      found.warning(
        'REDIS_URL and DIRECTORY_REDIS_URL are the same, so queues and directory can take each other’s memory',
      ),
    )
  }
  if ((config.AWS_ACCESS_KEY_ID === undefined) !== (config.AWS_SECRET_ACCESS_KEY === undefined)) {
    findings.push(found.fault('one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set alone: set both or none'))
  }
  return findings.length > 0 ? findings : [found.ok('the settings of the stores are valid')]
}
