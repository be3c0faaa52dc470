import { writeFileSync } from 'node:fs'
import { apiConfigSchema } from '../../api/config.ts'
import { backupConfigSchema, cliConfigSchema } from '../../cli/config.ts'
import { migrateConfigSchema } from '../../clickhouse/migrate/config.ts'
import { ingestConfigSchema } from '../../ingest/config.ts'
import { POOL_NAMES } from '../../schemas/queues/names.ts'
import { workersConfigSchema } from '../../workers/config.ts'

/** File of the chart with the names that its values may use. */
export const SETTINGS_FILE = new URL('penstock/settings.json', import.meta.url)

/** Settings that the chart decides itself: addresses and ports of pods, and the times of a shutdown. */
export const OWN_SETTINGS: readonly string[] = [
  'BIND_HOST',
  'ADMIN_BIND_HOST',
  'INGEST_PORT',
  'INGEST_ADMIN_PORT',
  'INGEST_GRPC_PORT',
  'WORKERS_ADMIN_PORT',
  'API_PORT',
  'API_ADMIN_PORT',
  'SHUTDOWN_DEADLINE_MS',
  'DRAIN_DELAY_MS',
]

/** Returns the settings of each process that values of the chart may have, and the pools that need a Deployment. */
export function chartSettings() {
  const namesOf = (schema: { readonly shape: object }) =>
    Object.keys(schema.shape)
      .filter(name => !OWN_SETTINGS.includes(name))
      .sort()
  const processes = {
    edge: namesOf(ingestConfigSchema),
    workers: namesOf(workersConfigSchema),
    api: namesOf(apiConfigSchema),
    migrate: namesOf(migrateConfigSchema),
  }
  // Commands look at what every process does.
  const commands = [backupConfigSchema, cliConfigSchema].flatMap(namesOf)
  const toolbox = [...new Set([...Object.values(processes).flat(), ...commands])].sort()
  return { settings: { ...processes, toolbox }, queues: POOL_NAMES }
}

if (import.meta.main) writeFileSync(SETTINGS_FILE, `${JSON.stringify(chartSettings(), null, 2)}\n`)
