import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { BackupError } from './backup-error.ts'

/** The position of a part in a backup, which its encryption authenticates. */
export interface PartPlace {
  readonly backup: string
  readonly index: number
  readonly isLast: boolean
}

/**
 * Encrypts and decrypts the parts of backups with a key of the operator (AES-256-GCM). A part is a nonce, the encrypted
 * bytes and a tag. The tag covers its place, so parts cannot be changed, exchanged, left out or taken from another backup.
 */
export interface Seal {
  seal(place: PartPlace, bytes: Buffer): Buffer
  /** Throws a BackupError if the part was not sealed with this key at this place. */
  open(place: PartPlace, sealed: Buffer): Buffer
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Creates the seal of a key, a text of any form with at least 32 bytes. */
export function createSeal(secret: string): Seal {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'penstock directory backup', 32))
  return {
    seal(place, bytes) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      cipher.setAAD(placeText(place))
      return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
    },
    open(place, sealed) {
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), {
          authTagLength: TAG_BYTES,
        })
        decipher.setAAD(placeText(place))
        decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
        return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      } catch (error) {
        throw new BackupError(
          `part ${place.index} of ${place.backup} cannot be decrypted: DIRECTORY_BACKUP_KEY is another key, or the part was changed`,
          { cause: error },
        )
      }
    },
  }
}

function placeText({ backup, index, isLast }: PartPlace): Buffer {
  return Buffer.from(`${backup}\n${index}\n${isLast ? 'last' : 'more'}`)
}
