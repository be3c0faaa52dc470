/** Reports whether `If-None-Match` names a tag. Weakly (RFC 9110 section 13.1.2), because proxies that compress make it weak. */
export function namesTag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const tags = ifNoneMatch.split(',', 50).map(tag => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}
