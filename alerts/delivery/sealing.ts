import { hash } from 'node:crypto'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { openBytes, sealBytes } from '../../shared/runtime/sealed-bytes.ts'

/** The receiver that a secret belongs to. */
interface SecretOwner {
  readonly workspaceId: string
  readonly receiverId: string
}

/** Keys of the operator: 32 bytes in base64 each (`isDeliveryKey`). */
export interface DeliveryKeys {
  /** Seals, and opens. */
  readonly key: string
  /** Only opens what was sealed before `key` replaced it. */
  readonly previousKey?: string | undefined
}

const KEY_BYTES = 32
/** Hex digits of the digest of a key, which name it. A sealed text begins with them. */
const KEY_ID_LENGTH = 8

/** Whether a text is 32 bytes in base64, as `openssl rand -base64 32` prints. */
export function isDeliveryKey(text: string): boolean {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === KEY_BYTES && bytes.toString('base64') === text
}

/**
 * Seals the secrets of receivers (webhook secrets, routing keys, URLs of Slack) for storage in the directory. A sealed text is
 * `<id of the key>.<nonce, text and tag in base64url>`. It is bound to its owner: copied to another receiver, it does not open.
 */
export class Sealing {
  readonly #keyId: string
  readonly #keys: ReadonlyMap<string, Buffer>

  /** Throws a PermanentError unless the keys are 32 bytes in base64. */
  constructor({ key, previousKey }: DeliveryKeys) {
    const texts = previousKey === undefined ? [key] : [previousKey, key]
    if (!texts.every(isDeliveryKey)) throw new PermanentError('a delivery key must be 32 bytes in base64')
    this.#keys = new Map(texts.map(text => [keyIdOf(text), Buffer.from(text, 'base64')]))
    this.#keyId = keyIdOf(key)
  }

  /** Returns a sealed text. It differs each time. */
  seal(owner: SecretOwner, secret: string): string {
    const key = this.#keys.get(this.#keyId) as Buffer
    return `${this.#keyId}.${sealBytes(key, contextOf(owner), Buffer.from(secret)).toString('base64url')}`
  }

  /**
   * Returns the secret of a sealed text. Throws a PermanentError if its key is neither of both, or if it was changed or belongs
   * to another receiver. The message contains nothing of it.
   */
  open(owner: SecretOwner, sealed: string): string {
    const [keyId = '', text = ''] = sealed.split('.')
    const key = this.#keys.get(keyId)
    if (key === undefined) {
      throw new PermanentError('the secret was sealed with another DELIVERY_KEY: set that as DELIVERY_KEY_PREVIOUS')
    }
    try {
      return openBytes(key, contextOf(owner), Buffer.from(text, 'base64url')).toString('utf8')
    } catch (cause) {
      throw new PermanentError('the sealed secret was changed, or belongs to another receiver', { cause })
    }
  }

  /** Whether a sealed text has the current key. Others are to be sealed again before DELIVERY_KEY_PREVIOUS is removed. */
  isCurrent(sealed: string): boolean {
    return sealed.startsWith(`${this.#keyId}.`)
  }
}

const keyIdOf = (key: string) => hash('sha256', `penstock delivery key ${key}`).slice(0, KEY_ID_LENGTH)

const contextOf = ({ workspaceId, receiverId }: SecretOwner) =>
  JSON.stringify(['penstock receiver', workspaceId, receiverId])
