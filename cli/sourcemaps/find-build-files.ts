import { opendir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface BuildFile {
  /** Below the build's directory, separated by `/`. */
  readonly path: string
  readonly absolutePath: string
  readonly size: number
}

export interface BuildFiles {
  /** Scripts that a page or a server loads, in the order of their paths. */
  readonly bundles: readonly BuildFile[]
  /** Every other file by its path: a bundle may name any of them as its map. */
  readonly others: ReadonlyMap<string, BuildFile>
  /** Symbolic links are not followed: what they name is in the directory under its own path, or is not the build's. */
  readonly skippedLinks: number
}

const BUNDLE = /\.(?:js|mjs|cjs|jsx)$/i
const SKIPPED_DIRECTORIES = new Set(['node_modules', '.git'])
const OPEN_DIRECTORIES = 8
const STATS_AT_ONCE = 32

/**
 * Walks a directory: never out of it, and never into a `node_modules` below it (the directory itself may lie in one).
 * Throws what the file system throws.
 */
export async function findBuildFiles(directory: string, signal?: AbortSignal): Promise<BuildFiles> {
  const root = await realpath(directory)
  const bundles: BuildFile[] = []
  const others = new Map<string, BuildFile>()
  let skippedLinks = 0

  async function walk(path: string): Promise<string[]> {
    const below: string[] = []
    let found: string[] = []
    const take = async () => {
      const files = await Promise.all(found.map(async file => describe(root, file)))
      for (const file of files) {
        if (BUNDLE.test(file.path)) bundles.push(file)
        else others.set(file.path, file)
      }
      found = []
    }
    for await (const entry of await opendir(join(root, path), { bufferSize: 256 })) {
      signal?.throwIfAborted()
      const name = path === '' ? entry.name : `${path}/${entry.name}`
      if (entry.isSymbolicLink()) skippedLinks++
      else if (entry.isDirectory()) {
        if (!SKIPPED_DIRECTORIES.has(entry.name)) below.push(name)
      } else if (entry.isFile()) found.push(name)
      if (found.length === STATS_AT_ONCE) await take()
    }
    await take()
    return below
  }

  let waiting = ['']
  while (waiting.length > 0) {
    const now = waiting.splice(-OPEN_DIRECTORIES)
    waiting = waiting.concat((await Promise.all(now.map(walk))).flat())
  }
  bundles.sort((a, b) => (a.path < b.path ? -1 : 1))
  return { bundles, others: new Map([...others].sort(([a], [b]) => (a < b ? -1 : 1))), skippedLinks }
}

async function describe(root: string, path: string): Promise<BuildFile> {
  const absolutePath = join(root, path)
  return { path, absolutePath, size: (await stat(absolutePath)).size }
}
