import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Directory of the console. */
export const CONSOLE = fileURLToPath(new URL('..', import.meta.url))
/** Directory into which it is built. */
export const BUILT = join(CONSOLE, 'dist')
/** Script that builds it. */
export const BUILD_SCRIPT = join(CONSOLE, 'build/build.ts')
/** File with the digest of the sources that were built. */
export const DIGEST_FILE = join(BUILT, 'sources.sha256')

/** Files outside of it that are built with it. */
const SHARED = ['../schemas/units.ts', '../shared/follow/follower.ts']

/** Returns the digest of all that the built files come from: the sources and the versions of the packages. */
export function digestOfSources(): string {
  const sources = globSync('**/*.{ts,tsx,css,html,json}', { cwd: CONSOLE, exclude: ['dist/**'] })
  const hash = createHash('sha256')
  for (const name of [...sources.filter(path => !path.endsWith('.test.ts')).sort(), ...SHARED]) {
    hash.update(`${name}\0`).update(readFileSync(join(CONSOLE, name)))
  }
  return hash.update(readFileSync(join(CONSOLE, '../package-lock.json'))).digest('hex')
}

/** Reports whether the built files are those of the sources. A package has no sources, only what was built from them. */
export function isConsoleBuilt(): boolean {
  if (!existsSync(join(CONSOLE, 'index.html'))) return existsSync(DIGEST_FILE)
  return existsSync(DIGEST_FILE) && readFileSync(DIGEST_FILE, 'utf8') === digestOfSources()
}
