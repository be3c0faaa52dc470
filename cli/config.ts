import { z } from 'zod'
import {
  backupSettings,
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

/** Settings of the commands that back the directory up and restore it. */
export const backupConfigSchema = z.object({
  ...directoryConfigSchema.shape,
  ...objectStoreSettings,
  ...backupSettings,
})
/** The parsed settings of a command that backs the directory up or restores it. */
export type BackupConfig = Readonly<z.infer<typeof backupConfigSchema>>

/** Settings of the commands that need all stores. The other processes use the same names. */
export const cliConfigSchema = z.object({
  ...directoryConfigSchema.shape,
  ...clickhouseSettings,
  ...objectStoreSettings,
})
/** The parsed settings of a command that needs all stores. */
export type CliConfig = Readonly<z.infer<typeof cliConfigSchema>>

/** Settings of the commands that back a whole installation up. */
export const installationConfigSchema = z.object({ ...cliConfigSchema.shape, ...backupSettings })
/** The parsed settings of a command that backs a whole installation up. */
export type InstallationConfig = Readonly<z.infer<typeof installationConfigSchema>>
