import type { ObjectStore } from '../object-store/types.ts'
import { Backups } from './backups.ts'
import { createSeal } from './seal.ts'

/** Opens the backups in the configured bucket, with the key of the operator if there is one. */
export function connectBackups(
  objects: ObjectStore,
  { DIRECTORY_BACKUP_KEY: secret }: { readonly DIRECTORY_BACKUP_KEY?: string | undefined },
): Backups {
  return new Backups({ objects, seal: secret === undefined ? undefined : createSeal(secret), now: Date.now })
}
