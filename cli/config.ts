import { z } from 'zod'
import {
  clickhouseSettings,
  objectStoreSettings,
  processSettings,
  redisSettings,
  retentionSettings,
} from '../shared/runtime/config.ts'

/** Settings of the commands that need only the directory. */
export const directoryConfigSchema = z.object({ ...processSettings, ...redisSettings, ...retentionSettings })
/** The parsed settings of a command that needs only the directory. */
export type DirectoryConfig = Readonly<z.infer<typeof directoryConfigSchema>>

/** Settings of the commands that need all stores. The other processes use the same names. */
export const cliConfigSchema = z.object({
  ...directoryConfigSchema.shape,
  ...clickhouseSettings,
  ...objectStoreSettings,
})
/** The parsed settings of a command that needs all stores. */
export type CliConfig = Readonly<z.infer<typeof cliConfigSchema>>
