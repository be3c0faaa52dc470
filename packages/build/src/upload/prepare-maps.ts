import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SOURCE_MAP_MAX_BYTES } from '../../../../schemas/http/limits.ts'
import { BuildFailure } from './build-failure.ts'
import { listed } from './describe.ts'
import type { EditedFile } from './edited-file.ts'
import { forEach } from './for-each.ts'
import type { PairedMap } from './pair-maps.ts'
import { planChanges, planShift } from './plan-changes.ts'
import { readInlineMap } from './read-bundle.ts'
import { insertInto, readWhole, replaceFile } from './replace-file.ts'
import { edited, scanSourceMap } from './scan-source-map.ts'

/** A source map in the form in which it is uploaded. */
export interface PreparedMap extends EditedFile {
  readonly path: string
  readonly size: number
  /** SHA-256 of the bytes, in hex. */
  readonly sha256: string
  /** Empty if the map has no debug id and none was to be injected. */
  readonly debugId: string
  /** Paths of the files into which the id was written. In a dry run, the files into which it would be written. */
  readonly injected: readonly string[]
  /** Paths of bundles whose id differs from that of the map, so that their id finds no map. */
  readonly differing: readonly string[]
}

/** Options of `prepareMap`. */
export interface PrepareOptions {
  readonly inject: boolean
  /** Writes nothing. */
  readonly dryRun: boolean
  /** Changes the files of maps too. Without it, only what is uploaded has the changes. */
  readonly writesMaps: boolean
  /** Directory for the maps of `data:` URLs. */
  readonly temporaryDirectory: string
  /** The service accepts the upload. No file changes before; its failure is thrown. */
  readonly accepted?: Promise<unknown> | undefined
}

/** All prepared maps of a build, and what the operator should know about them. */
interface PreparedMaps {
  /** Sorted by path. */
  readonly maps: readonly PreparedMap[]
  readonly warnings: readonly string[]
}

/**
 * Maps are scanned and hashed on one thread: two at once keep it busy and need at most twice the memory of the largest
 * map.
 */
const AT_ONCE = 2

/**
 * Prepares all maps. Throws a BuildFailure (`client_maps_unmapped`) if a file is not a source map and that is not
 * allowed.
 */
export async function prepareMaps(
  paired: readonly PairedMap[],
  options: PrepareOptions & { readonly allowUnmapped: boolean; readonly abortSignal: AbortSignal },
): Promise<PreparedMaps> {
  const maps: PreparedMap[] = []
  const refused: string[] = []
  await forEach(paired, { concurrency: AT_ONCE }, async map => {
    options.abortSignal.throwIfAborted()
    const result = await prepareMap(map, options)
    if ('refused' in result) refused.push(`${map.path} cannot be used: ${result.refused}`)
    else maps.push(result)
  })
  refused.sort()
  if (maps.length === 0 || (refused.length > 0 && !options.allowUnmapped)) {
    throw new BuildFailure('client_maps_unmapped', `source maps cannot be used:${listed(refused)}`)
  }
  maps.sort((a, b) => (a.path < b.path ? -1 : 1))
  const differing = maps.flatMap(({ path, differing }) =>
    differing.map(bundle => `the debug id of ${bundle} differs from that of its map ${path}`),
  )
  return { maps, warnings: [...refused, ...differing] }
}

/**
 * Gives a map and its bundles one debug id where they have none, and returns what is to be uploaded. The id is that of
 * the first bundle that has one, because running code reports this id. Otherwise it is the map's, or one derived from
 * the map's bytes. A map with another id gets the bundle's. Preparing a map again changes nothing. `{ refused }` is the
 * reason why the file is not a source map.
 */
export async function prepareMap(map: PairedMap, options: PrepareOptions): Promise<PreparedMap | { refused: string }> {
  const bytes = await readMap(map)
  if (bytes === undefined) return { refused: 'its data: URL cannot be decoded' }
  if (bytes === 'too large') return { refused: `it is larger than ${SOURCE_MAP_MAX_BYTES} bytes` }
  const scanned = scanSourceMap(bytes)
  if (!scanned.ok) return { refused: scanned.reason }

  const idOfBundle = map.bundles.find(({ debugId }) => debugId !== undefined)?.debugId
  const shift = options.inject ? planShift(map, bytes, scanned) : undefined
  // No edit is before this position, so the id and the digest share the hash of what precedes it.
  const changesFrom = Math.min(...[...(shift ?? []), ...scanned.idValues].map(({ start }) => start), scanned.insertAt)
  const hash = createHash('sha256').update(bytes.subarray(0, changesFrom))
  const derive = () => (options.inject ? deriveDebugId(hash.copy().update(bytes.subarray(changesFrom)).digest()) : '')
  const debugId = idOfBundle ?? scanned.debugId ?? derive()
  const { edits, bundles } = options.inject ? planChanges(map, scanned, shift, debugId) : { edits: [], bundles: [] }
  const pieces = edited(bytes, edits)
  for (const [i, piece] of pieces.entries()) hash.update(i === 0 ? piece.subarray(changesFrom) : piece)
  const size = pieces.reduce((sum, piece) => sum + piece.length, 0)

  await options.accepted
  const writesMap = options.writesMaps && edits.length > 0 && map.file !== undefined
  let absolutePath = map.file?.absolutePath ?? ''
  if (!options.dryRun) {
    // If the command is interrupted between two files, the next run sees which of them were changed and continues.
    if (writesMap) await replaceFile(absolutePath, pieces)
    if (!map.file) absolutePath = await writeTemporary(map.path, pieces, options.temporaryDirectory)
    for (const { file, insertions } of bundles) await insertInto(file.absolutePath, insertions)
  }
  const isWritten = writesMap || map.file === undefined
  return {
    path: map.path,
    absolutePath,
    sourceSize: isWritten ? size : bytes.length,
    edits: isWritten ? [] : edits,
    size,
    sha256: hash.digest('hex'),
    debugId,
    injected: [...(writesMap ? [map.path] : []), ...bundles.map(({ file }) => file.path)],
    differing: map.bundles.flatMap(bundle => (differs(bundle.debugId, debugId) ? [bundle.file.path] : [])),
  }
}

/** Returns undefined if an inline map cannot be decoded. A file that is too large is not read. */
async function readMap({ file, bundles }: PairedMap): Promise<Buffer | 'too large' | undefined> {
  if (file) return file.size > SOURCE_MAP_MAX_BYTES ? 'too large' : readWhole(file.absolutePath, file.size)
  const bytes = bundles[0] && (await readInlineMap(bundles[0].file))
  return bytes && bytes.length > SOURCE_MAP_MAX_BYTES ? 'too large' : bytes
}

async function writeTemporary(path: string, pieces: readonly Buffer[], directory: string): Promise<string> {
  const name = join(directory, createHash('sha256').update(path).digest('hex'))
  await writeFile(name, pieces, { mode: 0o600 })
  return name
}

function differs(idOfBundle: string | undefined, debugId: string): boolean {
  return idOfBundle !== undefined && idOfBundle !== debugId
}

/**
 * Returns a UUID of version 8 (RFC 9562) of the SHA-256 of a map without an id, so that the same build always gets the same ids.
 */
export function deriveDebugId(sha256: Buffer): string {
  const bytes = Buffer.from(sha256.subarray(0, 16))
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
