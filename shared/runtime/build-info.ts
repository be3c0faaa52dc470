import { readFileSync } from 'node:fs'

/** Version and commit of what runs, in package.json. A build of a package or an image adds the commit as `gitHead`. */
const { version, gitHead = 'unknown' } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string; gitHead?: string }

export const BUILD = { version, commit: gitHead } as const

/** Prints the version and ends the process, if its arguments ask for it. */
export function answerVersion(): void {
  if (!process.argv.includes('--version')) return
  process.stdout.write(`${version}\n`)
  process.exit(0)
}
