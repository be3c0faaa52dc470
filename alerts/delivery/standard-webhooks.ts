import { createHmac, createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { SECOND_MS } from '../../schemas/units.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'

/** One delivery of a webhook. Source: Standard Webhooks 1.0.0, section "Verifying webhook authenticity". */
export interface WebhookMessage {
  /** The same for each attempt, so that a receiver can ignore repeats. Letters, digits, `_` and `-`: a `.` would be ambiguous. */
  readonly id: string
  readonly body: string
  /** The current secret, and the one before it while that is replaced: `whsec_` or `whsk_`. */
  readonly secrets: readonly string[]
}

const SECRET_BYTES = 32
const HMAC_PREFIX = 'whsec_'
const PRIVATE_PREFIX = 'whsk_'
const PUBLIC_PREFIX = 'whpk_'

/**
 * Returns the headers of one attempt: `webhook-id`, `webhook-timestamp` in seconds, and `webhook-signature` with a signature for
 * each secret. Throws a PermanentError for an id or a secret of another form; its message contains neither.
 */
export function webhookHeaders({ id, body, secrets }: WebhookMessage, nowMs: number): Record<string, string> {
  if (!/^[\w-]{1,256}$/.test(id)) throw new PermanentError('the id of a webhook message must have no dot')
  if (secrets.length === 0) throw new PermanentError('a webhook message needs a secret')
  const timestamp = Math.floor(nowMs / SECOND_MS)
  const content = Buffer.from(`${id}.${timestamp}.${body}`)
  return {
    'webhook-id': id,
    'webhook-timestamp': `${timestamp}`,
    'webhook-signature': secrets.map(secret => signatureOf(secret, content)).join(' '),
  }
}

/** Returns a secret for HMAC-SHA256, of 32 random bytes, which sender and receiver share. */
export function createWebhookSecret(): string {
  return HMAC_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** Returns a secret of Ed25519, of which the receiver gets the public key, and cannot sign with it. */
export function createWebhookKeyPair(): string {
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  const [seed, publicKey] = [Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]
  return PRIVATE_PREFIX + Buffer.concat([seed, publicKey]).toString('base64')
}

/** Returns the public key of a secret of Ed25519, or undefined for one that sender and receiver share. */
export function publicKeyOf(secret: string): string | undefined {
  if (!secret.startsWith(PRIVATE_PREFIX)) return undefined
  const pair = keyBytes(secret.slice(PRIVATE_PREFIX.length), 64, 64)
  return PUBLIC_PREFIX + pair.subarray(32).toString('base64')
}

function signatureOf(secret: string, content: Buffer): string {
  if (secret.startsWith(HMAC_PREFIX)) {
    const key = keyBytes(secret.slice(HMAC_PREFIX.length), 24, 64)
    return `v1,${createHmac('sha256', key).update(content).digest('base64')}`
  }
  if (!secret.startsWith(PRIVATE_PREFIX)) throw new PermanentError(SECRET_RULE)
  const pair = keyBytes(secret.slice(PRIVATE_PREFIX.length), 64, 64)
  const [d, x] = [pair.subarray(0, 32).toString('base64url'), pair.subarray(32).toString('base64url')]
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' })
  return `v1a,${sign(null, content, key).toString('base64')}`
}

const SECRET_RULE =
  'the secret of a webhook must be whsec_ and 24 to 64 bytes in base64, or whsk_ and the 64 bytes of an Ed25519 key pair'

function keyBytes(text: string, least: number, most: number): Buffer {
  const bytes = Buffer.from(text, 'base64')
  // Node skips characters that are not base64, so that a damaged secret would be another, shorter one.
  if (bytes.toString('base64') !== text || bytes.length < least || bytes.length > most)
    throw new PermanentError(SECRET_RULE)
  return bytes
}
