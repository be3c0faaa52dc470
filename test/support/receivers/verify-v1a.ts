import { createPublicKey, verify } from 'node:crypto'

/** Verifies `v1a` as the specification states, which the library of the specification does not do. */
export function verifiesV1a(publicKey: string, headers: Readonly<Record<string, string>>, content: string): boolean {
  const x = Buffer.from(publicKey.replace('whpk_', ''), 'base64').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const signed = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${content}`)
  const signatures = (headers['webhook-signature'] ?? '').split(' ').filter(text => text.startsWith('v1a,'))
  return signatures.some(text => verify(null, signed, key, Buffer.from(text.slice(4), 'base64')))
}
