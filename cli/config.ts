import { z } from 'zod'
import { clickhouseSettings, objectStoreSettings, processSettings, redisSettings } from '../shared/runtime/config.ts'

/** What the commands take that need the control store alone. */
export const controlConfigSchema = z.object({ ...processSettings, ...redisSettings })
export type ControlConfig = Readonly<z.infer<typeof controlConfigSchema>>

/** The settings of the other processes: where the stores are. */
export const cliConfigSchema = z.object({
  ...controlConfigSchema.shape,
  ...clickhouseSettings,
  ...objectStoreSettings,
})
export type CliConfig = Readonly<z.infer<typeof cliConfigSchema>>
