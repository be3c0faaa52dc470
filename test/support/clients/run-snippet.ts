import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { MINUTE_MS } from '../../../schemas/units.ts'

const run = promisify(execFile)
const NODE_MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url))

/** Programs that replace those of an example, by name, as scripts of a shell: what an example installs is there already. */
type Replaced = Readonly<Record<string, string>>

/** Runs an example of the console as it is pasted into a terminal, in an empty folder, to its end. */
export async function runSnippet(text: string, replaced: Replaced, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-snippet-'))
  try {
    const bin = join(folder, 'bin')
    await mkdir(bin)
    await symlink(NODE_MODULES, join(folder, 'node_modules'))
    for (const [name, script] of Object.entries(replaced)) {
      await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`)
      await chmod(join(bin, name), 0o755)
    }
    const path = [bin, dirname(process.execPath), process.env.PATH].join(':')
    const options = { cwd: folder, timeout: MINUTE_MS, env: { HOME: process.env.HOME, ...env, PATH: path } }
    await run('sh', ['-e', '-c', text], options)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
