import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { Backups } from '../shared/backup/backups.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
import type { Queues } from '../shared/queue/queues.ts'
import type { DoctorConfig } from './config.ts'
import type { ExitCode } from './exit-codes.ts'

/** The directory and the Redis that stores it. */
export interface DirectoryConnection {
  readonly redis: Redis
  readonly store: Directory
  /** Connects the Redis of the queues, and closes the connection when the work has settled. */
  readonly withQueues: <T>(work: (queues: Queues) => Promise<T>) => Promise<T>
  /** How many days the installation keeps rows (RETENTION_DAYS). */
  readonly retentionDays: number
}

/** All stores of an installation. */
export interface Stores extends DirectoryConnection {
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
}

/** The directory and its backups. */
export interface BackupConnection extends DirectoryConnection {
  readonly backups: Backups
  /** Connects the directory again for one transaction of all of it, and closes the connection when the work has settled. */
  readonly withTransaction: <T>(work: (redis: Redis) => Promise<T>) => Promise<T>
}

/** The buckets of an installation and of its backups. They are the same, unless a command names another one for backups. */
export interface BackupBuckets {
  readonly objects: ObjectStore
  /** The bucket of the backups. */
  readonly target: ObjectStore
  /** Returns the backups of the directory below this beginning of keys in the bucket of the backups. */
  readonly directoryBackupsAt: (root: string) => Backups
  /** Whether backups of the directory are encrypted (DIRECTORY_BACKUP_KEY). */
  readonly isEncrypting: boolean
  /** How many days the installation keeps rows (RETENTION_DAYS). */
  readonly retentionDays: number
}

/** All stores of an installation, and the buckets of its backups. */
export interface InstallationStores extends Stores, BackupConnection {
  readonly buckets: BackupBuckets
  /** Database of the tables (CLICKHOUSE_DATABASE). */
  readonly database: string
}

/** How every command reports its result. */
export interface CommandOutput {
  /** Writes a line to stdout. */
  readonly print: (text: string) => void
  /** Writes a line to stderr. */
  readonly printError: (text: string) => void
  /** Sets the exit code of the process, which ends once the command has returned, and writes the error to stderr. */
  readonly exit: (code: ExitCode, error?: string) => void
}

/** What a command uses that needs all stores. */
export interface StoresCommandContext extends CommandOutput {
  readonly withStores: (run: (stores: Stores) => Promise<void>) => Promise<void>
}

/** What a command uses that needs only the Redis of the queues. */
export interface QueuesCommandContext extends CommandOutput {
  readonly withQueues: (run: (queues: Queues) => Promise<void>) => Promise<void>
}

/** What a command uses that looks at each store by itself, so that one that is down holds up no other. */
export interface BundleCommandContext extends QueuesCommandContext {
  readonly withDirectory: (run: (directory: DirectoryConnection) => Promise<void>) => Promise<void>
  readonly withClickHouse: (run: (clickhouse: ClickHouseClient) => Promise<void>) => Promise<void>
  /** Returns the settings. Secrets may be named by files. */
  readonly environment: () => Promise<Readonly<Record<string, string | undefined>>>
  /** Writes text or bytes to stdout and waits while the reader is slow. */
  readonly write: (content: string | Uint8Array) => Promise<void>
  /** The working directory. */
  readonly directory: string
  readonly fetch: typeof fetch
  readonly now: () => number
}

/** An installation that is examined. None of its stores needs to answer. */
export interface Examined {
  readonly config: DoctorConfig
  /** The environment from which the settings were read. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Resolves once the Redis of the queues is connected. Rejects with the reason why it is not. */
  readonly queues: () => Promise<Queues>
  /** Resolves once the Redis of the directory is connected. Rejects with the reason why it is not. */
  readonly directory: () => Promise<{ readonly redis: Redis; readonly store: Directory }>
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
  readonly now: () => number
}

/** Dependencies of `doctor`. */
export interface DoctorCommandContext extends CommandOutput {
  /** Runs a command on the stores, none of which needs to answer, and closes the connections when it has settled. */
  readonly withExamined: (run: (examined: Examined) => Promise<void>) => Promise<void>
}

/** What a command uses that needs only the directory. */
export interface DirectoryCommandContext extends CommandOutput {
  readonly withDirectory: (run: (directory: DirectoryConnection) => Promise<void>) => Promise<void>
  /** Writes text or bytes to stdout and waits while the reader is slow. */
  readonly write: (content: string | Uint8Array) => Promise<void>
  readonly stdin: AsyncIterable<Uint8Array>
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working directory. */
  readonly directory: string
  readonly now: () => number
}

/** What a command uses that backs the directory up or restores it. */
export interface BackupCommandContext extends CommandOutput {
  readonly withBackups: (run: (connection: BackupConnection) => Promise<void>) => Promise<void>
  readonly now: () => number
}

/** What a command uses that backs the whole installation up. `bucket` is that of the backups; S3_BUCKET if left out. */
export interface InstallationBackupContext extends CommandOutput {
  readonly withBuckets: (bucket: string | undefined, run: (buckets: BackupBuckets) => Promise<void>) => Promise<void>
  readonly withInstallation: (
    bucket: string | undefined,
    run: (stores: InstallationStores) => Promise<void>,
  ) => Promise<void>
  readonly now: () => number
}

/** What a command uses that reads from the API. */
export interface ReadCommandContext extends CommandOutput {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working directory. */
  readonly directory: string
  readonly fetch: typeof fetch
  /** Writes text or bytes to stdout and waits while the reader is slow. */
  readonly write: (content: string | Uint8Array) => Promise<void>
  /** Registers a function that runs once, when the process is asked to stop. */
  readonly onStop: (stop: () => void) => void
}

/** Dependencies of `sourcemaps upload`. It needs no store. */
export interface UploadCommandContext extends CommandOutput {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working directory. */
  readonly directory: string
  readonly fetch: typeof fetch
  readonly stderr: NodeJS.WriteStream
  /** Registers a function that runs once, when the process is asked to stop. */
  readonly onStop: (stop: () => void) => void
}

/** Dependencies of `demo`. It needs no store. */
export interface DemoCommandContext extends CommandOutput {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working directory. */
  readonly directory: string
  readonly stderr: NodeJS.WriteStream
  readonly now: () => number
}
