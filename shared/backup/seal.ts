import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** A backup that cannot be restored, or a directory that cannot be backed up. The message names the reason. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Encrypts bytes with a key of the operator, a text of any form (AES-256-GCM): a nonce, the encrypted bytes, and a tag, which
 * also covers the time of the backup. So nothing can be changed or cut off, nor an old backup be presented as a new one.
 */
export function encrypt(key: string, createdAt: string, bytes: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', derive(key), nonce)
  cipher.setAAD(Buffer.from(createdAt))
  return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** Returns the bytes that were encrypted. Throws a BackupError unless all of them are as they were encrypted with this key. */
export function decrypt(key: string, createdAt: string, sealed: Buffer): Buffer {
  try {
    const nonce = sealed.subarray(0, NONCE_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', derive(key), nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(createdAt))
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch (error) {
    throw new BackupError(
      'the backup cannot be decrypted: DIRECTORY_BACKUP_KEY is another key, or the backup was changed',
      { cause: error },
    )
  }
}

function derive(key: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', 'penstock directory backup', 32))
}
