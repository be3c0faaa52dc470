import { readFile } from 'node:fs/promises'
import { manifestEntrySchema, SOURCE_MAP_MAX_BYTES } from '../../schemas/http/source-maps/schemas.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { BuildStop, listed } from './build-stop.ts'
import { type BuildFile, type BuildFiles, findBuildFiles } from './find-build-files.ts'
import { chunkUrlOf, type PairedMap, pairMaps } from './pair-maps.ts'
import { type Bundle, readBundle } from './read-bundle.ts'
import { scanSourceMap } from './scan-source-map.ts'

export interface DiscoveredBuild {
  readonly maps: readonly PairedMap[]
  readonly bundleCount: number
  /** What is odd about the build and does not keep it from being uploaded, one line each. */
  readonly warnings: readonly string[]
  /** Why it must not be uploaded as it is: the release would lack maps that its bundles promise. */
  readonly fault?: BuildStop
}

export interface DiscoverOptions {
  readonly directory: string
  readonly urlPrefix: string
  /** A bundle without the map that it names is only warned of. */
  readonly allowUnmapped: boolean
  /** Bundles will be given debug ids. */
  readonly inject: boolean
  readonly signal: AbortSignal
}

const READ_AT_ONCE = 8

/**
 * Finds bundles and maps and which belong together; changes nothing. Faults: no map at all (`no_source_maps`); a bundle
 * that names a map which is not there, or maps of which none belongs to a bundle (`client_maps_unmapped`).
 */
export async function discoverBuild(options: DiscoverOptions): Promise<DiscoveredBuild> {
  const files = await findBuildFiles(options.directory, options.signal)
  const bundles: Bundle[] = []
  await forEachConcurrently(files.bundles, { concurrency: READ_AT_ONCE, stopOnFailure: true }, async (file, i) => {
    options.signal.throwIfAborted()
    bundles[i] = await readBundle(file)
  })
  const { maps, missing, orphans, remote } = await pairMaps({ ...options, debugIdOf }, files, bundles)
  const missingLines = missing.map(
    ({ bundle, named }) => `${bundle.file.path} names ${JSON.stringify(named)}, which is not there`,
  )
  const orphanLines = orphans.map(({ path }) => `${path} belongs to no bundle and has no debug id: it is left out`)
  const fault = faultOf(options, { maps, missingLines, orphanLines })
  const warnings = [
    ...(options.allowUnmapped || fault?.result === 'no_source_maps' ? missingLines : []),
    ...orphanLines,
    ...remote.map(({ file }) => `${file.path} names its map by an address, which is not fetched`),
    ...maps.flatMap(oddities),
    ...(options.inject ? compressedBefore(maps, files) : []),
    ...(files.skippedLinks > 0 ? [`symbolic links are not followed: ${files.skippedLinks} were passed over`] : []),
  ]
  return { maps, bundleCount: files.bundles.length, warnings, ...(fault && { fault }) }
}

function oddities({ path, bundles }: PairedMap): string[] {
  if (bundles.length === 0) return [`${path} belongs to no bundle: only its debug id leads to it`]
  if (bundles.length === 1) return []
  return [`${path} is named by ${bundles.length} bundles: without debug ids only ${bundles[0]?.file.path} leads to it`]
}

/** Bundles that are to change and have a compressed copy, which will be served without their debug id. */
function compressedBefore(maps: readonly PairedMap[], { others }: BuildFiles): string[] {
  const changing = maps.flatMap(({ bundles }) => bundles.filter(({ debugId }) => debugId === undefined))
  return changing.flatMap(({ file }) =>
    ['gz', 'br', 'zst'].flatMap(ending =>
      others.has(`${file.path}.${ending}`) ? [`${file.path}.${ending} was made before its bundle has a debug id`] : [],
    ),
  )
}

function faultOf(
  { directory, urlPrefix, allowUnmapped }: DiscoverOptions,
  found: { maps: readonly PairedMap[]; missingLines: string[]; orphanLines: string[] },
): BuildStop | undefined {
  const { maps, missingLines, orphanLines } = found
  if (maps.length === 0 && orphanLines.length === 0) {
    return new BuildStop('no_source_maps', `there is no source map in ${directory}: does the build write them?`)
  }
  const paths = maps.filter(map => !isDeclarable(map, urlPrefix)).map(({ path }) => path)
  if (paths.length > 0) {
    const rule = 'at most 1,024 bytes, no backslash, at most 2,048 characters with the prefix'
    return new BuildStop('pipeline_failed', `these paths cannot be declared (${rule}):${listed(paths)}`)
  }
  if (missingLines.length > 0 && !allowUnmapped) {
    const advice = 'build them, or pass --allow-unmapped when they are not yours to build'
    return new BuildStop('client_maps_unmapped', `source maps are missing: ${advice}${listed(missingLines)}`)
  }
  if (maps.length === 0) {
    return new BuildStop('client_maps_unmapped', `no source map belongs to a bundle:${listed(orphanLines)}`)
  }
  return undefined
}

async function debugIdOf({ absolutePath, size }: BuildFile): Promise<string | undefined> {
  if (size > SOURCE_MAP_MAX_BYTES) return undefined
  const scanned = scanSourceMap(await readFile(absolutePath))
  return scanned.ok ? scanned.debugId : undefined
}

function isDeclarable({ path, bundles }: PairedMap, urlPrefix: string): boolean {
  const chunkUrl = chunkUrlOf(urlPrefix, bundles[0]?.file.path ?? '')
  return manifestEntrySchema.safeParse({ path, hash: '', debugId: '', chunkUrl }).success
}
