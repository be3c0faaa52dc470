import { z } from 'zod'
import {
  clickhouseSettings,
  migrationSettings,
  processSettings,
  redisSettings,
  retentionSettings,
} from '../../shared/runtime/config.ts'

/** Settings of `npm run migrate`. */
export const migrateConfigSchema = z.object({
  ...processSettings,
  /** The Redis of the queues, in which the workers show that they run. Only migrations that need quiet connect to it. */
  REDIS_URL: redisSettings.REDIS_URL,
  ...clickhouseSettings,
  ...migrationSettings,
  ...retentionSettings,
})
