import { addAbortSignal } from 'node:stream'
import type { ListedFile } from '../../schemas/http/releases/schemas.ts'
import type { ManifestPointer } from '../../schemas/records/directory.ts'
import { manifestFileSchema } from '../../schemas/records/manifest.ts'
import { KIB, MIB } from '../../schemas/units.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { ElementCutter } from './element-cutter.ts'

/** Size at which a page ends before its limit of files, because their paths are long. */
const PAGE_LIMIT_BYTES = 8 * MIB
/**
 * Limit of one entry. Its texts have at most 3.5 KB (docs/api/releases.md#source-map-part,
 * docs/api/releases.md#source-map-complete), and six times as much if JSON escapes every character.
 */
const FILE_LIMIT_BYTES = 32 * KIB

/** A position in a manifest, from which the next page continues. */
interface ManifestCursor {
  /** Sequence number of the completion that stored the manifest. */
  readonly sequence: number
  /** Byte behind the last file of the page. */
  readonly offset: number
}

/** The part of a manifest to read. */
export interface ManifestPage {
  readonly limit: number
  readonly after: ManifestCursor | undefined
}

/** One page of a manifest. */
export interface ManifestFiles {
  readonly files: ListedFile[]
  /** Where the next page begins, or undefined on the last page. */
  readonly next: ManifestCursor | undefined
}

/**
 * Reads one page of a manifest, and no more of its object. Returns undefined if the object was deleted. Throws what the store
 * throws, a PermanentError for an invalid cursor or manifest, and a TransientError when the signal fires.
 */
export function readManifestPage(
  objects: Pick<ObjectStore, 'getStream'>,
  pointer: ManifestPointer,
  page: ManifestPage,
  abortSignal: AbortSignal,
): Promise<ManifestFiles | undefined> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new TransientError('the object store did not send the manifest in time'))
    if (abortSignal.aborted) return giveUp()
    abortSignal.addEventListener('abort', giveUp, { once: true })
    read(objects, pointer, page, abortSignal)
      .then(resolve, reject)
      .finally(() => abortSignal.removeEventListener('abort', giveUp))
  })
}

async function read(
  objects: Pick<ObjectStore, 'getStream'>,
  pointer: ManifestPointer,
  { limit, after }: ManifestPage,
  abortSignal: AbortSignal,
): Promise<ManifestFiles | undefined> {
  const object = await objects.getStream(pointer.objectKey, after && { start: after.offset })
  if (object === undefined) return undefined
  const files: ListedFile[] = []
  const cutter = new ElementCutter({
    limit,
    limitBytes: PAGE_LIMIT_BYTES,
    elementLimitBytes: FILE_LIMIT_BYTES,
    offset: after?.offset,
  })
  // Leaving the loop also ends the download.
  for await (const piece of addAbortSignal(abortSignal, object.body) as AsyncIterable<Buffer>) {
    for (const element of cutter.push(piece)) files.push(parseFile(element))
    if (cutter.isDone) break
  }
  if (!cutter.isDone) throw new PermanentError(`the manifest ${pointer.objectKey} is cut short`)
  if (after === undefined && cutter.isLast && files.length !== pointer.sourceMapCount) {
    const counted = `${files.length} files instead of ${pointer.sourceMapCount}`
    throw new PermanentError(`the manifest ${pointer.objectKey} has ${counted}`)
  }
  const next = cutter.isLast ? undefined : { sequence: pointer.sequence, offset: cutter.endOffset }
  return { files, next }
}

function parseFile(element: Buffer): ListedFile {
  try {
    const { path, hash, debugId, chunkUrl, size, verified } = manifestFileSchema.parse(JSON.parse(element.toString()))
    return { path, hash, debugId, chunkUrl, size, verified }
  } catch (cause) {
    throw new PermanentError('the manifest contains an invalid entry', { cause })
  }
}
