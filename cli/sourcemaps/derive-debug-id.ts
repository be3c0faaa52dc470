import { createHash } from 'node:crypto'

/** The namespace of debug ids of source maps. Another one would give every build other ids. */
const NAMESPACE = Buffer.from('5c2f3a5e0d7b4f3b9a6e0f4cc1b7d2a8', 'hex')

/** A UUID of version 5 (RFC 9562) of the content: the same build gives the same ids. */
export function deriveDebugId(map: Buffer): string {
  const bytes = createHash('sha1').update(NAMESPACE).update(map).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
