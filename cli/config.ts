import { z } from 'zod'
import { clickhouseSettings, objectStoreSettings, processSettings, redisSettings } from '../shared/runtime/config.ts'

/** What the commands take that need the directory alone. */
export const directoryConfigSchema = z.object({ ...processSettings, ...redisSettings })
export type DirectoryConfig = Readonly<z.infer<typeof directoryConfigSchema>>

/** The settings of the other processes: where the stores are. */
export const cliConfigSchema = z.object({
  ...directoryConfigSchema.shape,
  ...clickhouseSettings,
  ...objectStoreSettings,
})
export type CliConfig = Readonly<z.infer<typeof cliConfigSchema>>
