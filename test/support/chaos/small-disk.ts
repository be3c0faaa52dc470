import { execFile } from 'node:child_process'
import { mkdir, open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MIB } from '../../../schemas/units.ts'

const run = promisify(execFile)
const CHUNK = Buffer.alloc(MIB)

/** A small file system that a test can fill, with the data of one server. */
export interface SmallDisk {
  /** Leaves no free byte, or only the reserve. */
  fill(): Promise<void>
  /** Frees what `fill` took. */
  free(): Promise<void>
  unmount(): Promise<void>
}

/**
 * Mounts a small file system in memory on a new directory, whose `reserveBytes` are never filled. Returns the reason if this user
 * may not mount.
 */
export async function mountSmallDisk(directory: string, bytes: number, reserveBytes = 0): Promise<SmallDisk | string> {
  await mkdir(directory, { recursive: true })
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=700`, 'tmpfs', directory])
  } catch (error) {
    return (error as Error).message.trim().split('\n').at(-1) ?? 'mount failed'
  }
  const ballast = join(directory, 'ballast')
  return {
    async fill() {
      const file = await open(ballast, 'w')
      try {
        while ((await freeBytes(directory)) >= reserveBytes) await file.write(CHUNK)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        await file.close()
      }
    },
    free: () => rm(ballast, { force: true }),
    async unmount() {
      await run('umount', ['--lazy', directory])
    },
  }
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
}
