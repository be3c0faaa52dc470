import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'

const BLOCK = Buffer.alloc(4_096, 1)
/** An fsync that takes longer waits for something else: another process, or the file system that frees blocks. */
const SLOW_MS = 20
const QUIET_MS = 500
const DEADLINE_MS = 20_000

/** Writes and syncs a block `count` times and returns how long each took, in ms. Each makes the file longer, as a log. */
export async function timeSyncs(dir: string, count: number): Promise<number[]> {
  const times: number[] = []
  await appendWhile(dir, ms => times.push(ms) < count)
  return times
}

/**
 * Waits until no fsync has been slow for half a second. A file system that is mounted with `discard` discards freed blocks
 * when it commits its journal, and every fsync of a file that has grown waits for that: 2 to 3 s for 4 GB. So a measurement that
 * begins after gigabytes were deleted (the old log of Redis after a rewrite, dropped parts of ClickHouse, the directory of a
 * scenario) would measure the deletion, and an edge would answer 503.
 */
export async function untilDiskQuiet(dir: string): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  let quietSince = performance.now()
  await appendWhile(dir, ms => {
    const now = performance.now()
    if (ms > SLOW_MS) quietSince = now
    return now - quietSince < QUIET_MS && now < deadline
  })
}

async function appendWhile(dir: string, next: (ms: number) => boolean): Promise<void> {
  const path = join(dir, 'fsync-probe')
  const file = await open(path, 'a')
  try {
    for (let isDone = false; !isDone; ) {
      const startedAt = performance.now()
      await file.write(BLOCK)
      await file.datasync()
      isDone = !next(performance.now() - startedAt)
    }
  } finally {
    await file.close()
    await rm(path, { force: true })
  }
}
