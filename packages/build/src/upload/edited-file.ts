import { open } from 'node:fs/promises'
import { KIB } from '../../../../schemas/units.ts'
import { readRange } from './replace-file.ts'
import type { Edit } from './scan-source-map.ts'

/** A file that is read as if these edits had been made. */
export interface EditedFile {
  readonly absolutePath: string
  /** Size of the file without the edits. Bytes that were appended meanwhile are not read. */
  readonly sourceSize: number
  /** Sorted by their position. */
  readonly edits: readonly Edit[]
}

const CHUNK_BYTES = 256 * KIB

/** Reads a file with its edits, in chunks of at most 256 KiB. */
export async function* readEdited({ absolutePath, sourceSize, edits }: EditedFile): AsyncGenerator<Buffer> {
  const file = await open(absolutePath)
  try {
    let taken = 0
    for (const { start, end, text } of [...edits, { start: sourceSize, end: sourceSize, text: '' }]) {
      while (taken < start) {
        const chunk = await readRange(file, taken, Math.min(taken + CHUNK_BYTES, start))
        if (chunk.length === 0) return // the file became shorter, which the declared size shows
        taken += chunk.length
        yield chunk
      }
      taken = end
      if (text !== '') yield Buffer.from(text)
    }
  } finally {
    await file.close()
  }
}

/** Joins chunks to blocks of this size, of which the last one may be shorter. */
export async function* inBlocks(chunks: AsyncIterable<Buffer>, size: number): AsyncGenerator<Buffer> {
  let block = Buffer.alloc(0)
  for await (const chunk of chunks) {
    block = Buffer.concat([block, chunk])
    while (block.length >= size) {
      yield block.subarray(0, size)
      block = block.subarray(size)
    }
  }
  if (block.length > 0) yield block
}
