import { readFile } from 'node:fs/promises'
import { SOURCE_MAP_MAX_BYTES } from '../../schemas/endpoints/sign-source-maps.ts'
import { sourceMapPathSchema } from '../../schemas/source-map-path.ts'
import { BuildStop, listed } from './build-stop.ts'
import { type BuildFile, findBuildFiles } from './find-build-files.ts'
import { forEachAtOnce } from './for-each-at-once.ts'
import { type PairedMap, pairMaps } from './pair-maps.ts'
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
  await forEachAtOnce(READ_AT_ONCE, files.bundles, async (file, i) => {
    options.signal.throwIfAborted()
    bundles[i] = await readBundle(file)
  })
  const { maps, missing, orphans, remote } = await pairMaps({ ...options, debugIdOf }, files, bundles)
  const missingLines = missing.map(
    ({ bundle, named }) => `${bundle.file.path} names ${printable(named)}, which is not there`,
  )
  const orphanLines = orphans.map(({ path }) => `${path} belongs to no bundle and has no debug id: it is left out`)
  const idLines = maps.flatMap(({ path, bundles }) =>
    bundles.length === 0 ? [`${path} belongs to no bundle: only its debug id leads to it`] : [],
  )
  const sharedLines = maps.flatMap(({ path, bundles }) =>
    bundles.length > 1
      ? [`${path} is named by ${bundles.length} bundles: without debug ids only ${bundles[0]?.file.path} leads to it`]
      : [],
  )
  const remoteLines = remote.map(({ file }) => `${file.path} names its map by an address, which is not fetched`)
  const fault = faultOf(options, { maps, orphanCount: orphans.length, missingLines, orphanLines })
  const warnings = [...remoteLines, ...orphanLines, ...idLines, ...sharedLines]
  if (options.allowUnmapped || fault?.result === 'no_source_maps') warnings.unshift(...missingLines)
  return { maps, bundleCount: files.bundles.length, warnings, ...(fault && { fault }) }
}

function faultOf(
  { directory, allowUnmapped }: DiscoverOptions,
  found: { maps: readonly PairedMap[]; orphanCount: number; missingLines: string[]; orphanLines: string[] },
): BuildStop | undefined {
  const { maps, orphanCount, missingLines, orphanLines } = found
  if (maps.length === 0 && orphanCount === 0) {
    return new BuildStop('no_source_maps', `there is no source map in ${directory}: does the build write them?`)
  }
  const paths = maps.map(({ path }) => path).filter(path => !sourceMapPathSchema.safeParse(path).success)
  if (paths.length > 0) {
    return new BuildStop(
      'pipeline_failed',
      `these paths cannot be declared (at most 1,024 bytes, no backslash):${listed(paths)}`,
    )
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

/** What a bundle says goes to a terminal. */
function printable(text: string): string {
  return JSON.stringify(text)
}
