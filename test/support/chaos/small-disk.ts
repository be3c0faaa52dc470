import { execFile } from 'node:child_process'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const CHUNK = Buffer.alloc(1024 * 1024)

/** A small file system that a test can fill, with the data of one server. */
export interface SmallDisk {
  /** Leaves no free byte. */
  fill(): Promise<void>
  /** Frees what `fill` took. */
  free(): Promise<void>
  unmount(): Promise<void>
}

/** Mounts a small file system in memory on a new directory. Returns the reason if this user may not mount. */
export async function mountSmallDisk(directory: string, bytes: number): Promise<SmallDisk | string> {
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
        for (;;) await file.write(CHUNK)
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
