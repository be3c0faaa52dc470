import { posix } from 'node:path'
import type { BuildFile, BuildFiles } from './find-build-files.ts'
import type { Bundle } from './read-bundle.ts'

/** A source map of the build and the bundles it is of. */
export interface PairedMap {
  /** What it is declared as. */
  readonly path: string
  /** A map that its bundle carries itself has none. */
  readonly file?: BuildFile
  /** In the order of their paths; empty for a map that only its debug id leads to. */
  readonly bundles: readonly Bundle[]
}

export interface Pairing {
  /** In the order of their paths. */
  readonly maps: readonly PairedMap[]
  /** Bundles that name a map which is not in the build. */
  readonly missing: readonly { readonly bundle: Bundle; readonly named: string }[]
  /** Maps that no bundle is of and that have no debug id either: nothing could find them. */
  readonly orphans: readonly BuildFile[]
  /** Bundles whose map is named by an address, which nothing fetches. */
  readonly remote: readonly Bundle[]
}

export interface PairingDeps {
  /** Of a map file; undefined when it has none or is no source map. */
  readonly debugIdOf: (map: BuildFile) => Promise<string | undefined>
  /** What a bundle's address begins with: an absolute path in `sourceMappingURL` is seen from there. */
  readonly urlPrefix: string
}

const MAX_NAMED_LENGTH = 4_096

/**
 * Finds the map of each bundle: the one it names, else the one beside it (`app.js.map`), else the one with its debug id.
 * Nothing outside of the build is looked at, whatever a bundle names.
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
    const file = others.get(named ?? '') ?? others.get(`${path}.map`)
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

/** The address of a bundle as stack traces show it; characters that a URL path has no place for are encoded. */
export function chunkUrlOf(urlPrefix: string, path: string): string {
  return (
    urlPrefix +
    encodeURI(path).replaceAll('?', '%3F').replaceAll('#', '%23').replaceAll('%5B', '[').replaceAll('%5D', ']')
  )
}

/** The path below the build's directory that a bundle names as its map. */
function namedFile({ file, sourceMappingUrl }: Bundle, urlPrefix: string): string | undefined {
  if (sourceMappingUrl === undefined || sourceMappingUrl.length > MAX_NAMED_LENGTH) return undefined
  const named = decoded(sourceMappingUrl.replace(/[?#].*$/s, ''))
  if (named.startsWith(urlPrefix)) return named.slice(urlPrefix.length)
  if (!named.startsWith('/')) return posix.normalize(posix.join(posix.dirname(file.path), named))
  const root = urlPrefix.replace(/^(?:~|[a-z][a-z0-9+.-]*:\/\/[^/]*)/i, '')
  return posix.normalize(named.startsWith(root) ? named.slice(root.length) : named.slice(1))
}

/** A map of scripts: not one of style sheets or type declarations, which no stack trace needs. */
function isScriptMap({ path }: BuildFile, others: ReadonlyMap<string, BuildFile>): boolean {
  if (!path.endsWith('.map')) return false
  const mapped = path.slice(0, -'.map'.length)
  return !others.has(mapped) && !/\.(?:css|d\.[cm]?ts)$/i.test(mapped)
}

/** The path of a map that has no file: no other file has it. */
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
    return text // a percent sign that begins nothing is part of the name
  }
}
