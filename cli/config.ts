import { z } from 'zod'
import {
  backupSettings,
  clickhouseSettings,
  durabilitySettings,
  objectStoreSettings,
  processSettings,
  redisSettings,
  retentionSettings,
} from '../shared/runtime/config.ts'

/** Settings of the commands that need only the directory. */
export const directoryConfigSchema = z.object({ ...processSettings, ...redisSettings, ...retentionSettings })
/** The parsed settings of a command that needs only the directory. */
export type DirectoryConfig = Readonly<z.infer<typeof directoryConfigSchema>>

/** Settings of the commands that need only the Redis of the queues. */
export const queuesConfigSchema = z.object({ ...processSettings, REDIS_URL: redisSettings.REDIS_URL })
/** The parsed settings of a command that needs only the Redis of the queues. */
export type QueuesConfig = Readonly<z.infer<typeof queuesConfigSchema>>

/** Settings of the commands that need only ClickHouse. */
export const clickhouseConfigSchema = z.object(clickhouseSettings)
/** The parsed settings of a command that needs only ClickHouse. */
export type ClickHouseConfig = Readonly<z.infer<typeof clickhouseConfigSchema>>

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

/** Settings of `doctor`, which examines what all processes need of the stores. */
export const doctorConfigSchema = z.object({ ...cliConfigSchema.shape, ...backupSettings, ...durabilitySettings })
/** The parsed settings of `doctor`. */
export type DoctorConfig = Readonly<z.infer<typeof doctorConfigSchema>>
