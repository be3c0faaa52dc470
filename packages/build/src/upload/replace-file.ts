import { randomUUID } from 'node:crypto'
import { chmod, type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { MIB } from '../../../../schemas/units.ts'

const CHUNK_BYTES = MIB

/**
 * Replaces the content of a file by these pieces. A concurrent reader sees the old bytes or the new ones. The mode
 * stays.
 */
export function replaceFile(path: string, pieces: readonly Buffer[]): Promise<void> {
  return byRename(path, async temporary => {
    const file = await open(temporary, 'wx', 0o600)
    try {
      for (const piece of pieces) await file.writeFile(piece)
    } finally {
      await file.close()
    }
  })
}

/** Text that is inserted at an offset of a file. */
interface Insertion {
  readonly at: number
  readonly text: string
}

/** Inserts texts into a file, like replaceFile. The insertions are sorted by their offset. The file is never held as a whole. */
export function insertInto(path: string, insertions: readonly Insertion[]): Promise<void> {
  return byRename(path, async temporary => {
    const source = await open(path)
    const target = await open(temporary, 'wx', 0o600)
    try {
      const { size } = await source.stat()
      let taken = 0
      for (const { at, text } of [...insertions, { at: size, text: '' }]) {
        while (taken < at) {
          const chunk = await readRange(source, taken, Math.min(taken + CHUNK_BYTES, at))
          if (chunk.length === 0) throw new Error(`${path} became shorter while it was being read`)
          await target.writeFile(chunk)
          taken += chunk.length
        }
        await target.writeFile(text)
      }
    } finally {
      await Promise.all([source.close(), target.close()])
    }
  })
}

/** Reads a file of this size in one step, which takes half of the time of `readFile` for large files. */
export async function readWhole(path: string, size: number): Promise<Buffer> {
  const file = await open(path)
  try {
    return await readRange(file, 0, size)
  } finally {
    await file.close()
  }
}

/** Reads the bytes of a file from `start` up to `end`, or fewer if the file is shorter. */
export async function readRange(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(end - start)
  let filled = 0
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

async function byRename(path: string, write: (temporary: string) => Promise<void>): Promise<void> {
  const { mode } = await stat(path)
  const temporary = join(dirname(path), `.${basename(path).slice(0, 100)}.${randomUUID()}.tmp`)
  try {
    await write(temporary)
    await chmod(temporary, mode & 0o7777)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
