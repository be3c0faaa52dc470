import { posix } from 'node:path'
import type { BuildFile, BuildFiles } from './find-build-files.ts'
import type { Bundle } from './read-bundle.ts'

/** A source map of the build and the bundles that it belongs to. */
export interface PairedMap {
  /** Path under which the map is declared to the service. */
  readonly path: string
  /** The file of the map. Undefined for an inline map. */
  readonly file?: BuildFile
  /** Sorted by path. Empty for a map that is found only by its debug id. */
  readonly bundles: readonly Bundle[]
}

/** The maps of a build, paired with its bundles. */
interface Pairing {
  /** Sorted by path. */
  readonly maps: readonly PairedMap[]
  /** Bundles that name a map outside the build or a missing one. */
  readonly missing: readonly { readonly bundle: Bundle; readonly named: string }[]
  /** Maps without a bundle and without a debug id, which nothing could find. */
  readonly orphans: readonly BuildFile[]
  /** Bundles that name their map by URL. It is not fetched. */
  readonly remote: readonly Bundle[]
}

/** Dependencies of the pairing. */
interface PairingDeps {
  /** Returns the debug id of a map file, or undefined if it has none or is not a source map. */
  readonly debugIdOf: (map: BuildFile) => Promise<string | undefined>
  /** Start of the bundles' URLs. An absolute path in `sourceMappingURL` is resolved against it. */
  readonly urlPrefix: string
}

const MAX_NAMED_LENGTH = 4_096

/**
 * Finds the map of each bundle: the one that it names, else the one beside it (`app.js.map`, or `app.bundle.hbc.map`, which
 * Hermes writes), else the one with its debug id. Files outside the build are never read, whatever a bundle names.
 */
export async function pairMaps(
  deps: PairingDeps,
  { others }: BuildFiles,
  bundles: readonly Bundle[],
): Promise<Pairing> {
  const byMap = new Map<string, { file?: BuildFile; bundles: Bundle[] }>()
  const unpaired: Bundle[] = []
  const add = (file: BuildFile, bundle: Bundle) => {
    const entry = byMap.get(file.path)
    if (entry) entry.bundles.push(bundle)
    else byMap.set(file.path, { file, bundles: [bundle] })
  }
  for (const bundle of bundles) {
    const { path } = bundle.file
    const named = namedFile(bundle, deps.urlPrefix)
    const file = others.get(named ?? '') ?? others.get(`${path}.map`) ?? others.get(`${path}.hbc.map`)
    if (bundle.hasInlineMap) byMap.set(freePath(path, others), { bundles: [bundle] })
    else if (file) add(file, bundle)
    else unpaired.push(bundle)
  }

  const left = [...others.values()].filter(file => isScriptMap(file, others) && !byMap.has(file.path))
  const orphans: BuildFile[] = []
  for (const file of left) {
    const debugId = await deps.debugIdOf(file)
    const bundle = unpaired.find(bundle => bundle.debugId !== undefined && bundle.debugId === debugId)
    if (bundle) {
      add(file, bundle)
      unpaired.splice(unpaired.indexOf(bundle), 1)
    } else if (debugId !== undefined) byMap.set(file.path, { file, bundles: [] })
    else orphans.push(file)
  }
  return {
    maps: [...byMap].map(([path, entry]) => ({ path, ...entry })).sort((a, b) => (a.path < b.path ? -1 : 1)),
    missing: unpaired.flatMap(bundle => {
      const named = bundle.sourceMappingUrl
      return named === undefined || isRemote(named) ? [] : [{ bundle, named: named.slice(0, 200) }]
    }),
    orphans,
    remote: unpaired.filter(bundle => bundle.sourceMappingUrl !== undefined && isRemote(bundle.sourceMappingUrl)),
  }
}

/** Returns the URL of a bundle as stack traces show it. Characters that a URL path cannot contain are encoded. */
export function chunkUrlOf(urlPrefix: string, path: string): string {
  return (
    urlPrefix +
    encodeURI(path).replaceAll('?', '%3F').replaceAll('#', '%23').replaceAll('%5B', '[').replaceAll('%5D', ']')
  )
}

/** Returns the path, relative to the build's directory, that a bundle names as its map. */
function namedFile({ file, sourceMappingUrl }: Bundle, urlPrefix: string): string | undefined {
  if (sourceMappingUrl === undefined || sourceMappingUrl.length > MAX_NAMED_LENGTH) return undefined
  const named = decoded(sourceMappingUrl.replace(/[?#].*$/s, ''))
  if (named.startsWith(urlPrefix)) return named.slice(urlPrefix.length)
  if (!named.startsWith('/')) return posix.normalize(posix.join(posix.dirname(file.path), named))
  const root = urlPrefix.replace(/^(?:~|[a-z][a-z0-9+.-]*:\/\/[^/]*)/i, '')
  return posix.normalize(named.startsWith(root) ? named.slice(root.length) : named.slice(1))
}

/** Returns whether a file maps a script. Maps of style sheets and type declarations occur in no stack trace. */
function isScriptMap({ path }: BuildFile, others: ReadonlyMap<string, BuildFile>): boolean {
  if (!path.endsWith('.map')) return false
  const mapped = path.slice(0, -'.map'.length)
  return !others.has(mapped) && !/\.(?:css|d\.[cm]?ts)$/i.test(mapped)
}

/** Returns a path for an inline map that no file has. */
function freePath(bundlePath: string, others: ReadonlyMap<string, BuildFile>): string {
  let path = `${bundlePath}.map`
  while (others.has(path)) path = path.replace(/map$/, 'inline.map')
  return path
}

function isRemote(url: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]*:)?\/\//i.test(url)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // a percent sign that starts no escape sequence is part of the name
  }
}
