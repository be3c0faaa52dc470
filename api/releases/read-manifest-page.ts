import { addAbortSignal } from 'node:stream'
import type { ListedFile } from '../../schemas/http/releases/schemas.ts'
import type { ManifestPointer } from '../../schemas/records/directory.ts'
import { manifestFileSchema } from '../../schemas/records/manifest.ts'
import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { ElementCutter } from './element-cutter.ts'
import type { ManifestPlace } from './release-place.ts'

/** A page of files with long paths ends before its limit. */
const PAGE_LIMIT_BYTES = 8 * 1024 * 1024
/** The texts of an entry have 3.5 KB at most (CONTRACT 4.5 and 4.7), six times that where JSON escapes each character. */
const FILE_LIMIT_BYTES = 32 * 1024

export interface ManifestFiles {
  readonly files: ListedFile[]
  /** Where the next page begins; undefined on the last. */
  readonly next: ManifestPlace | undefined
}

/**
 * Reads a page of a manifest as far as the page goes; undefined when its object is gone. Throws what the store throws, a
 * PermanentError for a place that is none or an object that is no manifest, and a TransientError when the signal fires.
 */
export function readManifestPage(
  objects: Pick<ObjectStore, 'getStream'>,
  pointer: ManifestPointer,
  page: { readonly limit: number; readonly after: ManifestPlace | undefined },
  signal: AbortSignal,
): Promise<ManifestFiles | undefined> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new TransientError('the object store did not send the manifest in time'))
    if (signal.aborted) return giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    read(objects, pointer, page, signal)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', giveUp))
  })
}

async function read(
  objects: Pick<ObjectStore, 'getStream'>,
  pointer: ManifestPointer,
  { limit, after }: { readonly limit: number; readonly after: ManifestPlace | undefined },
  signal: AbortSignal,
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
  // Leaving the loop ends the download too.
  for await (const piece of addAbortSignal(signal, object.body) as AsyncIterable<Buffer>) {
    for (const element of cutter.push(piece)) files.push(parseFile(element))
    if (cutter.isDone) break
  }
  if (!cutter.isDone) throw new PermanentError(`the manifest ${pointer.objectKey} ends before its end`)
  if (after === undefined && cutter.isLast && files.length !== pointer.sourceMapCount) {
    const counted = `${files.length} files instead of ${pointer.sourceMapCount}`
    throw new PermanentError(`the manifest ${pointer.objectKey} has ${counted}`)
  }
  const next = cutter.isLast ? undefined : { sequence: pointer.sequence, offset: cutter.end }
  return { files, next }
}

function parseFile(element: Buffer): ListedFile {
  try {
    const { path, hash, debugId, chunkUrl, size, verified } = manifestFileSchema.parse(JSON.parse(element.toString()))
    return { path, hash, debugId, chunkUrl, size, verified }
  } catch (cause) {
    throw new PermanentError('what stands in the manifest is no file of it', { cause })
  }
}
