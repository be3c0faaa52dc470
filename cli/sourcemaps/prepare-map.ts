import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/source-maps/schemas.ts'
import { debugIdLine } from './bundle-comments.ts'
import { deriveDebugId } from './derive-debug-id.ts'
import type { PairedMap } from './pair-maps.ts'
import { readInlineMap } from './read-bundle.ts'
import { insertNearEnd, replaceFile } from './replace-file.ts'
import { scanSourceMap, setDebugId } from './scan-source-map.ts'

/** A map as it is uploaded. */
export interface PreparedMap {
  readonly path: string
  /** Where its bytes are read from. */
  readonly absolutePath: string
  readonly size: number
  /** In hex. */
  readonly sha256: string
  /** Empty when it has none and none was to be given. */
  readonly debugId: string
  /** Paths of the files that were given the id, or would be. */
  readonly injected: readonly string[]
  /** Paths of bundles that have another id than their map: it leads nowhere. */
  readonly differing: readonly string[]
}

export interface PrepareOptions {
  readonly inject: boolean
  /** Nothing is written. */
  readonly dryRun: boolean
  /** Where maps of `data:` URLs are put. */
  readonly temporaryDirectory: string
}

/**
 * Gives a map and its bundles one debug id where they have none, and says what there is to upload. Which id: that of the
 * first bundle that has one, since this is what running code tells; else the map's; else one derived from the map's bytes.
 * A map of another id gets the bundle's. Doing it again changes nothing. `{ refused }` says why it is no source map.
 */
export async function prepareMap(map: PairedMap, options: PrepareOptions): Promise<PreparedMap | { refused: string }> {
  const bytes = await readMap(map)
  if (bytes === undefined) return { refused: 'its data: URL cannot be decoded' }
  if (bytes === 'too large') return { refused: `it has over ${SOURCE_MAP_MAX_BYTES} bytes` }
  const scanned = scanSourceMap(bytes)
  if (!scanned.ok) return { refused: scanned.reason }

  const ofBundle = map.bundles.find(({ debugId }) => debugId !== undefined)?.debugId
  const debugId = ofBundle ?? scanned.debugId ?? (options.inject ? deriveDebugId(bytes) : '')
  const mapChanges = options.inject && scanned.debugId !== debugId
  const pieces = mapChanges ? setDebugId(bytes, scanned, debugId) : [bytes]
  const bare = options.inject ? map.bundles.filter(bundle => bundle.debugId === undefined) : []
  let absolutePath = map.file?.absolutePath ?? ''
  if (!options.dryRun) {
    // The map first: what breaks off in between is found and ended by the next run.
    if (map.file && mapChanges) await replaceFile(absolutePath, pieces)
    if (!map.file) absolutePath = await keepAside(map.path, pieces, options.temporaryDirectory)
    for (const { file, insertAt, before } of bare) {
      await insertNearEnd(file.absolutePath, insertAt, Buffer.from(debugIdLine(debugId, before)))
    }
  }
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return {
    path: map.path,
    absolutePath,
    size: pieces.reduce((sum, piece) => sum + piece.length, 0),
    sha256: hash.digest('hex'),
    debugId,
    injected: [...(mapChanges && map.file ? [map.path] : []), ...bare.map(({ file }) => file.path)],
    differing: map.bundles.flatMap(bundle => (differs(bundle.debugId, debugId) ? [bundle.file.path] : [])),
  }
}

/** Undefined when its bundle carries it and it cannot be decoded. A file that is too large is not read. */
async function readMap({ file, bundles }: PairedMap): Promise<Buffer | 'too large' | undefined> {
  if (file) return file.size > SOURCE_MAP_MAX_BYTES ? 'too large' : readFile(file.absolutePath)
  const bytes = bundles[0] && (await readInlineMap(bundles[0].file))
  return bytes && bytes.length > SOURCE_MAP_MAX_BYTES ? 'too large' : bytes
}

async function keepAside(path: string, pieces: readonly Buffer[], directory: string): Promise<string> {
  const name = join(directory, createHash('sha256').update(path).digest('hex'))
  await writeFile(name, pieces, { mode: 0o600 })
  return name
}

function differs(ofBundle: string | undefined, debugId: string): boolean {
  return ofBundle !== undefined && ofBundle !== debugId
}
