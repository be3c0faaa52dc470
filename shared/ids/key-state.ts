/** Returns whether a stored key is active, and otherwise why not. A revoked key that has also expired is `revoked`. */
export function keyState(
  { revokedAt, expiresAt }: { readonly revokedAt: string | null; readonly expiresAt: string | null },
  nowMs: number,
): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? 'expired' : 'active'
}

/** Returns when a key ends or has ended, in Unix milliseconds; infinity if it does not. */
export function keyEnd({ revokedAt, expiresAt }: { revokedAt: string | null; expiresAt: string | null }): number {
  const at = earlier(revokedAt, expiresAt)
  return at === null ? Number.POSITIVE_INFINITY : Date.parse(at)
}

/** Returns the earlier of two times. Null means never. */
export function earlier(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return Date.parse(a) <= Date.parse(b) ? a : b
}
