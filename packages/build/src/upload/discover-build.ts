import { readFile } from 'node:fs/promises'
import { SOURCE_MAP_MAX_BYTES } from '../../../../schemas/http/limits.ts'
import { CHUNK_URL_CHARACTERS, sourceMapPathFault } from '../../../../schemas/http/source-maps/path-fault.ts'
import { BuildFailure } from './build-failure.ts'
import { counted, listed } from './describe.ts'
import { type BuildFile, type BuildFiles, type BuildOutput, findBuildFiles } from './find-build-files.ts'
import { forEach } from './for-each.ts'
import { chunkUrlOf, type PairedMap, pairMaps } from './pair-maps.ts'
import { lacksDebugId } from './plan-changes.ts'
import { type Bundle, readBundle } from './read-bundle.ts'
import { scanSourceMap } from './scan-source-map.ts'

/** The source maps of a build, and what is wrong with them. */
export interface DiscoveredBuild {
  readonly maps: readonly PairedMap[]
  readonly bundleCount: number
  /** The files of maps, also those of style sheets, which are not uploaded. */
  readonly mapFiles: readonly BuildFile[]
  /** Problems that do not prevent the upload, one line each. */
  readonly warnings: readonly string[]
  /** The reason why the build must not be uploaded: the release would lack maps that its bundles name. */
  readonly failure?: BuildFailure
}

/** Options of `discoverBuild`. */
interface DiscoverOptions {
  readonly outputs: readonly BuildOutput[]
  readonly urlPrefix: string
  /** A bundle that names a missing map causes only a warning. */
  readonly allowUnmapped: boolean
  /** Debug ids will be added to the bundles. */
  readonly inject: boolean
  readonly abortSignal: AbortSignal
}

const READ_AT_ONCE = 8
const MAP_NAME = /\.(?:js|mjs|cjs|jsx|css|bundle|jsbundle|hbc)\.map$/i

/**
 * Finds the bundles and maps of a build and pairs them. It changes nothing. The build fails with `no_source_maps` if it
 * contains no map, and with `client_maps_unmapped` if a bundle names a missing map or no map belongs to a bundle.
 */
export async function discoverBuild(options: DiscoverOptions): Promise<DiscoveredBuild> {
  const files = await findBuildFiles(options.outputs, options.abortSignal)
  const bundles: Bundle[] = []
  await forEach(files.bundles, { concurrency: READ_AT_ONCE }, async (file, i) => {
    options.abortSignal.throwIfAborted()
    bundles[i] = await readBundle(file)
  })
  const { maps, missing, orphans, remote } = await pairMaps({ ...options, debugIdOf }, files, bundles)
  const missingLines = missing.map(
    ({ bundle, named }) => `${bundle.file.path} names ${JSON.stringify(named)}, which does not exist`,
  )
  const orphanLines = orphans.map(({ path }) => `${path} belongs to no bundle and has no debug id: it is not uploaded`)
  const bundleNames = files.bundles.map(({ path }) => path)
  const failure = failureOf(options, { maps, bundleNames, missingLines, orphanLines })
  const warnings = [
    ...(options.allowUnmapped || failure?.result === 'no_source_maps' ? missingLines : []),
    ...orphanLines,
    ...remote.map(({ file }) => `${file.path} names its map by URL, which is not fetched`),
    ...maps.flatMap(ambiguities),
    ...(options.inject ? compressedTooEarly(maps, files) : []),
    ...(files.skippedLinks > 0 ? [`symbolic links are not followed: ${files.skippedLinks} were skipped`] : []),
    ...files.unreadable.map(path => `${path} was skipped, because its name is not UTF-8`),
  ]
  const uploaded = maps.flatMap(({ file }) => file ?? [])
  const mapFiles = [...new Set([...uploaded, ...[...files.others.values()].filter(({ path }) => MAP_NAME.test(path))])]
  return { maps, mapFiles, bundleCount: files.bundles.length, warnings, ...(failure && { failure }) }
}

function ambiguities({ path, bundles }: PairedMap): string[] {
  if (bundles.length === 0) return [`${path} belongs to no bundle: it is found only by its debug id`]
  if (bundles.length === 1) return []
  return [
    `${path} is named by ${bundles.length} bundles: without debug ids it is found only for ${bundles[0]?.file.path}`,
  ]
}

/** Returns a warning for each compressed copy of a bundle that will change: it will be served without the debug id. */
function compressedTooEarly(maps: readonly PairedMap[], { others }: BuildFiles): string[] {
  const changing = maps.flatMap(({ bundles }) => bundles.filter(lacksDebugId))
  return changing.flatMap(({ file }) =>
    ['gz', 'br', 'zst'].flatMap(ending =>
      others.has(`${file.path}.${ending}`)
        ? [`${file.path}.${ending} was compressed before its bundle got a debug id`]
        : [],
    ),
  )
}

function failureOf(
  { outputs, urlPrefix, allowUnmapped }: DiscoverOptions,
  found: { maps: readonly PairedMap[]; bundleNames: string[]; missingLines: string[]; orphanLines: string[] },
): BuildFailure | undefined {
  const { maps, bundleNames, missingLines, orphanLines } = found
  if (maps.length === 0 && orphanLines.length === 0) {
    const bundles = bundleNames.length === 0 ? 'and no bundle' : `of its ${counted(bundleNames.length, 'bundle')}`
    const message = `${outputs.map(({ directory }) => directory).join(', ')} contains no source map ${bundles}: enable source maps in the build`
    return new BuildFailure('no_source_maps', message + listed(bundleNames))
  }
  const paths = maps.filter(map => !isDeclarable(map, urlPrefix)).map(({ path }) => path)
  if (paths.length > 0) {
    const rule = 'at most 1,024 bytes, no backslash, at most 2,048 characters with the prefix'
    return new BuildFailure('pipeline_failed', `these paths cannot be declared (${rule}):${listed(paths)}`)
  }
  if (missingLines.length > 0 && !allowUnmapped) {
    const advice = 'build them, or pass --allow-unmapped if you cannot'
    return new BuildFailure('client_maps_unmapped', `source maps are missing: ${advice}${listed(missingLines)}`)
  }
  if (maps.length === 0) {
    return new BuildFailure('client_maps_unmapped', `no source map belongs to a bundle:${listed(orphanLines)}`)
  }
  return undefined
}

async function debugIdOf({ absolutePath, size }: BuildFile): Promise<string | undefined> {
  if (size > SOURCE_MAP_MAX_BYTES) return undefined
  const scanned = scanSourceMap(await readFile(absolutePath))
  return scanned.ok ? scanned.debugId : undefined
}

function isDeclarable({ path, bundles }: PairedMap, urlPrefix: string): boolean {
  const chunkUrl = chunkUrlOf(urlPrefix, bundles[0]?.file.urlPath ?? '')
  return sourceMapPathFault(path) === undefined && chunkUrl.length <= CHUNK_URL_CHARACTERS
}
