/** Returns whether a stored key is active, and otherwise why not. A revoked key that has also expired is `revoked`. */
export function keyState(
  { revokedAt, expiresAt }: { readonly revokedAt: string | null; readonly expiresAt: string | null },
  nowMs: number,
): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active'
}
