import { access, opendir, realpath, stat } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { forEach } from './for-each.ts'

/** A file of the build. */
export interface BuildFile {
  /** Path relative to the build's directory, separated by `/`. */
  readonly path: string
  readonly absolutePath: string
  readonly size: number
  /** Path of the file in URLs, after their prefix. */
  readonly urlPath: string
}

/** A directory that a build has written. */
export interface BuildOutput {
  readonly directory: string
  /** Absolute paths of the files that were written. Every file in the directory if undefined. */
  readonly files?: readonly string[]
  /** Path at which the directory is served, after the prefix of URLs. Empty, or with a slash at its end. */
  readonly urlBase?: string
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
 * Finds the files of the outputs of a build. Several outputs have paths from the directory that contains all of them. Throws the
 * errors of the file system.
 */
export async function findBuildFiles(outputs: readonly BuildOutput[], abortSignal?: AbortSignal): Promise<BuildFiles> {
  const roots = await Promise.all(outputs.map(({ directory }) => realpath(directory)))
  const root = roots.reduce(commonDirectory)
  const found = await Promise.all(
    outputs.map(({ files }, i) => (files ? listed(roots[i] ?? root, files) : walked(roots[i] ?? root, abortSignal))),
  )
  const bundles = new Map<string, BuildFile>()
  const others = new Map<string, BuildFile>()
  for (const [i, { files }] of found.entries()) {
    const prefix = relative(root, roots[i] ?? root).replaceAll(sep, '/')
    for (const file of files) {
      const path = prefix === '' ? file.path : `${prefix}/${file.path}`
      const known = BUNDLE.test(path) ? bundles : others
      if (!known.has(path)) known.set(path, { ...file, path, urlPath: (outputs[i]?.urlBase ?? '') + file.path })
    }
  }
  return {
    bundles: [...sortedByPath(bundles).values()],
    others: sortedByPath(others),
    skippedLinks: found.reduce((sum, { skippedLinks }) => sum + skippedLinks, 0),
    unreadable: found.flatMap(({ unreadable }) => unreadable),
  }
}

type FoundFile = Omit<BuildFile, 'urlPath'>

interface FoundFiles extends Pick<BuildFiles, 'skippedLinks' | 'unreadable'> {
  readonly files: readonly FoundFile[]
}

/** Describes the files that a bundler names. Those outside of its directory, and those that it did not write, are left out. */
async function listed(root: string, paths: readonly string[]): Promise<FoundFiles> {
  const files: FoundFile[] = []
  await forEach([...new Set(paths)], { concurrency: STATS_AT_ONCE }, async absolutePath => {
    const path = relative(root, await realpath(absolutePath).catch(() => absolutePath)).replaceAll(sep, '/')
    if (path.startsWith('../') || !(await exists(absolutePath))) return
    files.push(await describe(root, path))
  })
  return { files, skippedLinks: 0, unreadable: [] }
}

/** Finds the files in a directory. It never leaves it and skips every `node_modules`, although it may itself be inside one. */
async function walked(root: string, abortSignal: AbortSignal | undefined): Promise<FoundFiles> {
  const files: FoundFile[] = []
  const unreadable: string[] = []
  let skippedLinks = 0

  async function walk(path: string): Promise<string[]> {
    const below: string[] = []
    let found: string[] = []
    const take = async () => {
      files.push(...(await Promise.all(found.map(file => describe(root, file)))))
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
  return { files, skippedLinks, unreadable }
}

function sortedByPath(files: ReadonlyMap<string, BuildFile>): Map<string, BuildFile> {
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Returns the deepest directory that contains both, or is one of them. */
function commonDirectory(a: string, b: string): string {
  let common = a
  while (relative(common, b).startsWith('..')) common = dirname(common)
  return common
}

/** Returns whether the name of a file was not UTF-8, so that its bytes are not those that were read. */
async function isLostName(root: string, path: string): Promise<boolean> {
  if (!path.includes('\ufffd')) return false
  return !(await exists(join(root, path)))
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

async function describe(root: string, path: string): Promise<FoundFile> {
  const absolutePath = join(root, path)
  return { path, absolutePath, size: (await stat(absolutePath)).size }
}
