/** A backup that cannot be restored, or a directory that cannot be backed up. The message names the reason. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}
