import { z } from 'zod'
import { clickhouseSettings, objectStoreSettings, processSettings, redisSettings } from '../shared/config.ts'

/** The settings of the other processes: where the stores are. */
export const cliConfigSchema = z.object({
  ...processSettings,
  ...redisSettings,
  ...clickhouseSettings,
  ...objectStoreSettings,
})
export type CliConfig = Readonly<z.infer<typeof cliConfigSchema>>
