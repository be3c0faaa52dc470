import { MINUTE_MS } from '../../schemas/units.ts'
import { type ExportedDirectory, exportDirectory } from '../directory/export/export-directory.ts'
import { Lease } from '../directory/lease.ts'
import { TransientError } from '../runtime/errors.ts'
import type { Backup, BackupContents, Backups } from './backups.ts'

/** A process that died while it made a backup leaves its lease for this long. It is renewed for each few kilobytes. */
const LEASE_MS = 5 * MINUTE_MS

type WrittenBackups = Pick<Backups, 'write' | 'assertNotPlainAfterEncrypted'>

/** Options of a backup. */
interface BackUpOptions {
  readonly isDue?: () => Promise<boolean>
  /** Whether a plain backup may follow an encrypted one. */
  readonly isPlainWanted?: boolean
}

/**
 * Backs up the directory, unless another process is doing so: returns `busy` then. `isDue` is asked once this process has the
 * lease, because another one may just have finished; if it returns false, so does this function return `busy`. Throws a
 * TransientError if the directory was emptied while it was read, and a BackupError if it has no workspace, or if the backup would
 * be plain after an encrypted one and `isPlainWanted` is not set.
 */
export async function backUpDirectory(
  { redis, store, backups }: ExportedDirectory & { readonly backups: WrittenBackups },
  { isDue = async () => true, isPlainWanted = false }: BackUpOptions = {},
): Promise<(Backup & BackupContents) | 'busy'> {
  if (!isPlainWanted) await backups.assertNotPlainAfterEncrypted()
  const lease = new Lease(redis, 'backup', LEASE_MS)
  if (!(await lease.take())) return 'busy'
  try {
    if (!(await isDue())) return 'busy'
    return await backups.write(exportDirectory({ redis, store }), async () => {
      if (await lease.renew()) return
      // A directory that is emptied loses the lease, too.
      throw new TransientError('the lease was lost: the backup took too long, or the directory was emptied')
    })
  } finally {
    await lease.release()
  }
}
