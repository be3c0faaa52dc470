/**
 * Returns a file name that is equal in every release. Removes scheme, host, query and fragment, and replaces hashes in
 * the name and directories that are hashes or versions by `*`. For example, `https://cdn.test/v12/app-DkJ2x9aB.js?x`
 * becomes a root, `*` and `app-*.js`.
 */
export function normalizeFile(file: string): string {
  const path = file
    .replace(/^[a-z][a-z0-9+.-]{0,30}:\/\/[^/]*/i, '')
    .replace(/[?#].*$/, '')
    .replaceAll('\\', '/')
  const segments = path.split('/')
  const name = segments.pop() ?? ''
  return [...segments.map(normalizeDirectory), normalizeName(name)].join('/')
}

function normalizeDirectory(name: string): string {
  return isHex(name) || /^v?\d[\d._-]*$/.test(name) ? '*' : name
}

/** Changes `3f9a2c1b.js`, `app.DkJ2x9aB.js` and `app-DkJ2x9aB.js` to `*.js`, `app.*.js` and `app-*.js`. */
function normalizeName(name: string): string {
  const parts = name.split('.')
  const extension = parts.length > 1 ? `.${parts.pop()}` : ''
  const normalized = parts.map((part, i) => ((i === 0 ? isHex(part) : isHash(part)) ? '*' : normalizeSuffix(part)))
  return normalized.join('.') + extension
}

/** Replaces a hash suffix. The eight base64url characters of a bundler may contain dashes; other hashes do not. */
function normalizeSuffix(part: string): string {
  for (const dash of [part.length - 9, part.lastIndexOf('-'), part.lastIndexOf('_')]) {
    const separator = part[dash]
    if (dash > 0 && (separator === '-' || separator === '_') && isHash(part.slice(dash + 1))) {
      return `${part.slice(0, dash + 1)}*`
    }
  }
  return part
}

/** Returns whether a text looks like a digest or a UUID. */
function isHex(text: string): boolean {
  return /^[0-9a-f-]{8,64}$/i.test(text) && /\d/.test(text)
}

/**
 * Returns whether a text looks like a hash, also in base32 and base64url. Such texts have a digit between letters,
 * letters between digits, or eight letters with a capital after the first. A word like `-MyWidget` also counts as a
 * hash: that costs less than a new finding per release.
 */
function isHash(text: string): boolean {
  if (isHex(text)) return true
  if (!/^[\w-]{8,32}$/.test(text)) return false
  return /[a-z]\d+[a-z]|\d[a-z_-]+\d/i.test(text) || (text.length === 8 && /.[A-Z]/.test(text))
}
