import type { Redis } from 'ioredis'
import { backUpDirectory } from '../shared/backup/back-up-directory.ts'
import { type Backups, CLOCK_AHEAD_MS } from '../shared/backup/backups.ts'
import type { Directory } from '../shared/directory/directory.ts'
import { directoryKeys } from '../shared/directory/record.ts'
import { errorFields } from '../shared/runtime/errors.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { WorkerMetrics } from './metrics.ts'

/** Dependencies of regular backups of the directory. */
export interface RegularBackupsDeps {
  readonly redis: Redis
  readonly store: Directory
  readonly backups: Backups
  readonly metrics: Pick<WorkerMetrics, 'watchBackups' | 'backupFailed'>
  readonly logger: Logger
  readonly now?: () => number
}

/** When backups are made, and how many are kept. */
interface BackupSchedule {
  readonly intervalMs: number
  readonly keep: number
  /** Time between two looks at the newest backup. */
  readonly checkEveryMs?: number
}

const CHECK_EVERY_MS = 60_000

/** Regular backups that are being made. */
interface RegularBackups {
  /** Makes no more backups. Resolves when none is in progress; one that is interrupted instead is not stored. */
  stop(): Promise<void>
}

/**
 * Backs the directory up when the newest backup is older than the interval, and removes those that are too many. All workers
 * look, and one of them makes the backup. A backup that fails is tried again at the next look.
 */
export function backUpRegularly(deps: RegularBackupsDeps, schedule: BackupSchedule): RegularBackups {
  const { backups, metrics, logger, now = Date.now } = deps
  const { intervalMs, checkEveryMs = CHECK_EVERY_MS } = schedule
  let newestAtMs: number | undefined
  let isStopped = false
  metrics.watchBackups(() => newestAtMs)

  async function readNewest(): Promise<number> {
    const [newest] = await backups.list()
    newestAtMs = newest === undefined ? Number.NEGATIVE_INFINITY : Date.parse(newest.createdAt)
    return newestAtMs
  }
  async function isDue(): Promise<boolean> {
    const newest = await readNewest()
    // All others are from clocks that were ahead: they must not stop backups until their time.
    return newest <= now() - intervalMs || newest > now() + CLOCK_AHEAD_MS
  }

  async function backUp(): Promise<void> {
    if (!(await isDue())) return
    if ((await deps.redis.zcard(directoryKeys.workspaces)) === 0) {
      // A new installation has neither. A directory that was lost must not become the newest backup.
      if (newestAtMs === Number.NEGATIVE_INFINITY) return
      throw new Error('the directory has no workspace, but there are backups of it: restore one (directory restore)')
    }
    const backup = await backUpDirectory(deps, { isDue })
    if (backup === 'busy') return
    newestAtMs = Date.parse(backup.createdAt)
    const { name, records, workspaces } = backup
    logger.info({ backup: name, records, workspaces }, 'the directory was backed up')
    await backups.prune(schedule.keep)
  }

  async function look(): Promise<void> {
    if (isStopped) return
    try {
      await backUp()
    } catch (error) {
      metrics.backupFailed()
      if (!isStopped) logger.error(errorFields(error), 'the directory could not be backed up')
    }
    if (!isStopped) timer = setTimeout(lookAgain, checkEveryMs)
  }
  function lookAgain(): void {
    looking = look()
  }
  let timer: NodeJS.Timeout | undefined
  let looking = look()

  return {
    stop() {
      isStopped = true
      clearTimeout(timer)
      return looking
    },
  }
}
