const WILDCARD = 'https://*.'

/**
 * Returns whether a text is an origin as browsers send it (`https://shop.example`, `http://localhost:3000`), or
 * names all origins below a host (`https://*.shop.example`). A host directly below the root of the DNS has no wildcard.
 */
export function isOriginPattern(text: string): boolean {
  const isWildcard = text.startsWith(WILDCARD)
  const origin = isWildcard ? `https://${text.slice(WILDCARD.length)}` : text
  const url = URL.parse(origin)
  if (origin.includes('*') || url === null) return false
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return false
  return url.origin === origin && (!isWildcard || url.hostname.includes('.'))
}

/** Returns a function that decides whether an `Origin` header matches one of these patterns. */
export function originMatcher(patterns: readonly string[]): (origin: string) => boolean {
  const exact = new Set(patterns.filter(pattern => !pattern.startsWith(WILDCARD)))
  const suffixes = patterns
    .filter(pattern => pattern.startsWith(WILDCARD))
    .map(pattern => pattern.slice(WILDCARD.length - 1))
  return origin => exact.has(origin) || suffixes.some(suffix => hasSuffix(origin, suffix))
}

function hasSuffix(origin: string, suffix: string): boolean {
  if (!origin.startsWith('https://') || !origin.endsWith(suffix)) return false
  return /^[a-z0-9.-]+$/.test(origin.slice('https://'.length, -suffix.length))
}
