const MAX_LENGTH = 2_048

/**
 * Returns the path of a source as developers know it: `webpack://shop/./src/cart.ts` and `../../src/cart.ts` become
 * `src/cart.ts`. Removes the scheme, loaders and query of the bundler, resolves `.` and `..`, and drops segments that
 * would lead out of the project. A URL keeps its path; a `file:` URL and an absolute path stay absolute.
 */
export function originalPath(source: string, sourceRoot: string): string {
  if (source === '' || source.length > MAX_LENGTH) return source.slice(0, MAX_LENGTH)
  const joined = isAbsolute(source) || sourceRoot === '' ? source : `${sourceRoot.replace(/\/+$/, '')}/${source}`
  // webpack writes the loaders of a module before it: `./babel-loader.js!./src/cart.js`.
  const module = joined.slice(joined.lastIndexOf('!') + 1)
  const { path, isRooted } = withoutScheme(module)
  const query = path.indexOf('?')
  const segments: string[] = []
  for (const segment of (query > 0 ? path.slice(0, query) : path).replaceAll('\\', '/').split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return (isRooted ? '/' : '') + segments.join('/')
}

function isAbsolute(source: string): boolean {
  return source.startsWith('/') || schemeEnd(source) > 0 || /^[a-z]:[\\/]/i.test(source)
}

/** Returns the start of `://` in a URL, or -1. `webpack:///x` and `webpack-internal:///x` are URLs too. */
function schemeEnd(text: string): number {
  const end = text.indexOf('://')
  return end > 0 && end <= 32 && /^[a-z][a-z0-9+.-]*$/i.test(text.slice(0, end)) ? end : -1
}

/** Removes the scheme and the host, which bundlers use for the name of the project. */
function withoutScheme(module: string): { path: string; isRooted: boolean } {
  const end = schemeEnd(module)
  if (end < 0) return { path: module, isRooted: module.startsWith('/') }
  const scheme = module.slice(0, end).toLowerCase()
  const slash = module.indexOf('/', end + 3)
  const path = slash < 0 ? '' : module.slice(slash)
  const isRooted = scheme === 'http' || scheme === 'https' || scheme === 'file'
  return { path, isRooted }
}
