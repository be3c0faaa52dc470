import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/** The root directory of this checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The parts of package.json that a release repeats. */
export const MANIFEST = z
  .object({
    name: z.string(),
    version: z.string(),
    type: z.literal('module'),
    optionalDependencies: z.record(z.string(), z.string()),
  })
  .parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')))

/** Returns the commit of this checkout, marked if files differ from it, or undefined where there is no repository. */
export function headCommit(): string | undefined {
  try {
    const args = ['describe', '--always', '--dirty', '--abbrev=40', '--exclude=*']
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}
