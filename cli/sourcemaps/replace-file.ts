import { randomUUID } from 'node:crypto'
import { chmod, copyFile, type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

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

/** Inserts bytes near the end of a file, like replaceFile. The bytes before `at` are copied without being read. */
export function insertNearEnd(path: string, at: number, inserted: Buffer): Promise<void> {
  return byRename(path, async temporary => {
    await copyFile(path, temporary)
    await chmod(temporary, 0o600) // the copy of a read-only file is read-only
    const file = await open(temporary, 'r+')
    try {
      const { size } = await file.stat()
      const tail = await readRange(file, at, size)
      await writeAll(file, Buffer.concat([inserted, tail]), at)
    } finally {
      await file.close()
    }
  })
}

/** Reads the bytes of a file from `start` up to `end`, or fewer if the file is shorter. */
export async function readRange(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start)
  let filled = 0
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

async function writeAll(file: FileHandle, bytes: Buffer, start: number): Promise<void> {
  let written = 0
  while (written < bytes.length) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, start + written)
    written += bytesWritten
  }
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
