/** Returns whether a session is among a share of all. Each page of the session has the same answer. */
export function isSampled(session: string, purpose: string, share: number): boolean {
  let hash = 0x811c9dc5
  for (const character of `${purpose}:${session}`) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193)
  // The high bits of FNV differ little between texts that end alike.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32 < share
}
