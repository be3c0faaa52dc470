/** A script of a release with the names that its build gave it. */
export interface Chunk {
  /** Address of the script: a URL, an absolute path, `~/path` for any host, or empty. */
  readonly chunkUrl: string
  /** Build-relative path of its source map. */
  readonly path: string
}

/** Finds the script that a stack frame names. */
export interface ChunkMatcher<C extends Chunk> {
  match(file: string): C | undefined
}

/**
 * Creates a matcher of the files of stack frames with the scripts of a release. It ignores query and fragment, decodes each
 * segment of a path, and compares in this order:
 *
 * 1. the address;
 * 2. the path, with any scheme and host;
 * 3. a suffix of the frame's path that begins after a `/`, the longest first. It must equal the path of a script, or the
 *    path of its map without `.map`. It never begins within a package of `node_modules`: `express/index.js` is not the
 *    `index.js` of the build. `index.android.bundle` also names the map `index.android.bundle.hbc.map`.
 *
 * Among scripts with the same path the first wins, and an address wins over the path of a map.
 */
export function createChunkMatcher<C extends Chunk>(chunks: readonly C[]): ChunkMatcher<C> {
  const byAddress = new Map<string, C>()
  const byPath = new Map<string, C>()
  const bySuffix = new Map<string, C>()
  for (const chunk of chunks) {
    const address = normalizeAddress(chunk.chunkUrl)
    if (address === '') continue
    const path = pathOf(address)
    putFirst(byAddress, address, chunk)
    putFirst(byPath, path, chunk)
    putFirst(bySuffix, withoutSlash(path), chunk)
  }
  for (const chunk of chunks) {
    const script = normalizeAddress(chunk.path).replace(/\.map$/, '')
    putFirst(bySuffix, withoutSlash(withoutDots(script)), chunk)
  }
  // React Native loads the bytecode `x.bundle.hbc` of Hermes under the name of the bundle.
  for (const chunk of chunks) {
    const bundle = /^(.*)\.hbc\.map$/.exec(normalizeAddress(chunk.path))?.[1]
    if (bundle !== undefined) putFirst(bySuffix, withoutSlash(withoutDots(bundle)), chunk)
  }
  bySuffix.delete('')

  return {
    match(file) {
      const address = normalizeAddress(file)
      const path = pathOf(address)
      return byAddress.get(address) ?? byPath.get(path) ?? longestSuffix(bySuffix, withoutSlash(path))
    },
  }
}

function longestSuffix<C>(bySuffix: ReadonlyMap<string, C>, path: string): C | undefined {
  const packages = path.lastIndexOf('node_modules/')
  for (let start = 0; ; ) {
    const found = bySuffix.get(path.slice(start))
    if (found !== undefined) return found
    const slash = path.indexOf('/', start)
    if (slash < 0 || (packages >= 0 && slash + 1 > packages)) return undefined
    start = slash + 1
  }
}

/** Removes query and fragment, replaces `\` by `/`, and decodes each segment. */
export function normalizeAddress(text: string): string {
  const end = text.search(/[?#]/)
  const address = (end < 0 ? text : text.slice(0, end)).replaceAll('\\', '/')
  return address.includes('%') ? address.split('/').map(decodeSegment).join('/') : address
}

/** An encoded slash stays encoded, because it separates nothing. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment).replaceAll('/', '%2F')
  } catch {
    return segment // it contains a literal `%`
  }
}

/** Removes scheme and host: `https://cdn.test/a.js`, `~/a.js` and `/a.js` become `/a.js`. `C:/a.js` stays. */
function pathOf(address: string): string {
  if (address.startsWith('~/')) return address.slice(1)
  const scheme = address.indexOf('://')
  if (scheme < 0 || scheme > 32) return withoutDots(address)
  const slash = address.indexOf('/', scheme + 3)
  return slash < 0 ? '/' : address.slice(slash)
}

function withoutDots(path: string): string {
  return path.startsWith('./') ? path.slice(2) : path
}

function withoutSlash(path: string): string {
  return path.startsWith('/') ? path.slice(1) : path
}

function putFirst<C>(map: Map<string, C>, key: string, chunk: C): void {
  if (!map.has(key)) map.set(key, chunk)
}
