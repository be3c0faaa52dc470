import { open } from 'node:fs/promises'
import { type BundleComments, readBundleComments } from './bundle-comments.ts'
import type { BuildFile } from './find-build-files.ts'
import { decodeDataUrl } from './inline-map.ts'
import { readRange } from './replace-file.ts'

export interface Bundle extends Omit<BundleComments, 'insertAt'> {
  readonly file: BuildFile
  /** Where its source map is, when it carries it itself. */
  readonly hasInlineMap: boolean
  /** Where the comment of a debug id belongs, and the bytes right before. */
  readonly insertAt: number
  readonly before: Buffer
}

const BEFORE_BYTES = 256
const TAIL_BYTES = 64 * 1024
/** A bundle in whose last bytes no map is named is read whole up to this: an inline map is one long line. */
const MAX_BYTES = 256 * 1024 * 1024

/** Reads the comments of a bundle, as a rule from its last bytes alone. A map that it carries itself is not kept. */
export async function readBundle(file: BuildFile): Promise<Bundle> {
  const { start, bytes, comments } = await readEnd(file)
  const { sourceMappingUrl, ...rest } = comments
  const hasInlineMap = isDataUrl(sourceMappingUrl)
  return {
    ...rest,
    ...(sourceMappingUrl !== undefined && !hasInlineMap && { sourceMappingUrl }),
    file,
    hasInlineMap,
    insertAt: start + comments.insertAt,
    before: Buffer.from(bytes.subarray(Math.max(0, comments.insertAt - BEFORE_BYTES), comments.insertAt)),
  }
}

/** The bytes of the map that a bundle carries itself, or undefined when they cannot be read as such. */
export async function readInlineMap(file: BuildFile): Promise<Buffer | undefined> {
  const { sourceMappingUrl } = (await readEnd(file)).comments
  return isDataUrl(sourceMappingUrl) ? decodeDataUrl(sourceMappingUrl) : undefined
}

async function readEnd(file: BuildFile): Promise<{ start: number; bytes: Buffer; comments: BundleComments }> {
  const handle = await open(file.absolutePath)
  try {
    const { size } = await handle.stat()
    const read = async (start: number) => {
      const bytes = await readRange(handle, start, size)
      return { start, bytes, comments: readBundleComments(bytes) }
    }
    const end = await read(Math.max(0, size - TAIL_BYTES))
    const mayBeLonger = end.start > 0 && end.comments.sourceMappingUrl === undefined
    return mayBeLonger && size <= MAX_BYTES ? await read(0) : end
  } finally {
    await handle.close()
  }
}

function isDataUrl(url: string | undefined): url is string {
  return url !== undefined && /^data:/i.test(url)
}
