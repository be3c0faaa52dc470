import { access, opendir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** A file of the build. */
export interface BuildFile {
  /** Path relative to the build's directory, separated by `/`. */
  readonly path: string
  readonly absolutePath: string
  readonly size: number
}

/** The files of the build. */
export interface BuildFiles {
  /** Scripts that a page or a server loads, sorted by path. */
  readonly bundles: readonly BuildFile[]
  /** Every other file by its path. A bundle may name any of them as its map. */
  readonly others: ReadonlyMap<string, BuildFile>
  /** Number of symbolic links, which are not followed: a target in the directory is found under its own path anyway. */
  readonly skippedLinks: number
  /** Paths that cannot be read, because a name in them is not UTF-8. */
  readonly unreadable: readonly string[]
}

/** `.bundle`, `.jsbundle` and `.hbc` are those of React Native. */
const BUNDLE = /\.(?:js|mjs|cjs|jsx|bundle|jsbundle|hbc)$/i
const SKIPPED_DIRECTORIES = new Set(['node_modules', '.git'])
const OPEN_DIRECTORIES = 8
const STATS_AT_ONCE = 32

/**
 * Finds the files in a directory. It never leaves the directory and skips every `node_modules` in it, although the
 * directory itself may be inside one. Throws the errors of the file system.
 */
export async function findBuildFiles(directory: string, abortSignal?: AbortSignal): Promise<BuildFiles> {
  const root = await realpath(directory)
  const bundles: BuildFile[] = []
  const others = new Map<string, BuildFile>()
  const unreadable: string[] = []
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
      abortSignal?.throwIfAborted()
      const name = path === '' ? entry.name : `${path}/${entry.name}`
      if (entry.isSymbolicLink()) skippedLinks++
      else if (await isLostName(root, name)) unreadable.push(name)
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
  return { bundles, others: new Map([...others].sort(([a], [b]) => (a < b ? -1 : 1))), skippedLinks, unreadable }
}

/** Returns whether the name of a file was not UTF-8, so that its bytes are not those that were read. */
async function isLostName(root: string, path: string): Promise<boolean> {
  if (!path.includes('\ufffd')) return false
  return access(join(root, path)).then(
    () => false,
    () => true,
  )
}

async function describe(root: string, path: string): Promise<BuildFile> {
  const absolutePath = join(root, path)
  return { path, absolutePath, size: (await stat(absolutePath)).size }
}
