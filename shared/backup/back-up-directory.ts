import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Backup } from '../../schemas/records/backup.ts'
import { type ExportedDirectory, exportDirectory } from '../directory/export/export-directory.ts'
import { BACKUP_LEASE, directoryKeys } from '../directory/record.ts'
import { TransientError } from '../runtime/errors.ts'
import { BackupError } from './backup-error.ts'
import type { Backups } from './backups.ts'

/** How long a backup may take for one part. A process that died leaves its lease for this long. */
const LEASE_MS = 5 * 60_000

/** KEYS lease; ARGV holder, lifetime in ms. Returns whether the holder still has the lease. */
const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`

/** KEYS lease; ARGV holder. */
const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`

/**
 * Backs up the directory, unless another process is doing so: returns `busy` then. `isDue` is asked once this process has the
 * lease, because another one may just have finished; if it returns false, so does this function return `busy`. Throws a
 * BackupError if the directory has lost records while it was read, or has no workspace.
 */
export async function backUpDirectory(
  { redis, store, backups }: ExportedDirectory & { readonly backups: Backups },
  isDue: () => Promise<boolean> = async () => true,
): Promise<Backup | 'busy'> {
  const holder = randomUUID()
  if ((await redis.set(BACKUP_LEASE, holder, 'PX', LEASE_MS, 'NX')) === null) return 'busy'
  try {
    if (!(await isDue())) return 'busy'
    return await backups.write(exportDirectory({ redis, store }), async ({ workspaces }) => {
      if ((await redis.eval(RENEW, 1, BACKUP_LEASE, holder, LEASE_MS)) !== 1) {
        throw new TransientError('the lease was lost: the backup took too long, or the directory was emptied')
      }
      await expectComplete(redis, workspaces)
    })
  } finally {
    await redis.eval(RELEASE, 1, BACKUP_LEASE, holder)
  }
}

/** Throws a BackupError if the directory was emptied while it was read. A workspace is never deleted. */
async function expectComplete(redis: Redis, workspaces: number): Promise<void> {
  if ((await redis.zcard(directoryKeys.workspaces)) >= workspaces) return
  throw new BackupError('the directory has lost workspaces while it was read')
}
