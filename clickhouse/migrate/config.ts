import { z } from 'zod'
import {
  clickhouseSettings,
  migrationSettings,
  processSettings,
  retentionSettings,
} from '../../shared/runtime/config.ts'

/** Settings of `npm run migrate`. */
export const migrateConfigSchema = z.object({
  ...processSettings,
  ...clickhouseSettings,
  ...migrationSettings,
  ...retentionSettings,
})
