import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../deploy/local/config.ts'
import { MINUTE_MS } from '../../schemas/units.ts'

const PACK_MS = 5 * MINUTE_MS

/**
 * Packs a package of `packages/` as `npm publish` does, into this folder. Returns the path of the tarball. Packing writes
 * `dist/`, so it happens in a copy beside the package, because tests of other files may pack the same one.
 */
export async function packPackage(name: string, folder: string): Promise<string> {
  const packages = join(ROOT, 'packages')
  const copy = await mkdtemp(join(packages, `.packed-${name}-`))
  try {
    await cp(join(packages, name), copy, { recursive: true, filter: path => basename(path) !== 'dist' })
    const into = await mkdtemp(join(folder, `packed-${name}-`))
    const pack = ['pack', '--silent', '--pack-destination', into]
    await promisify(execFile)('npm', pack, { cwd: copy, timeout: PACK_MS })
    const tarball = (await readdir(into)).find(file => file.endsWith('.tgz'))
    if (tarball === undefined) throw new Error(`npm has packed nothing for ${name}`)
    return join(into, tarball)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}
