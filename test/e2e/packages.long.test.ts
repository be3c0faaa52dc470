import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../../deploy/local/config.ts'
import { packPackage } from '../support/pack-package.ts'

const INSTALL_MS = 600_000
const run = promisify(execFile)
const BIN = join(ROOT, 'node_modules/.bin')
const PACKAGES = join(ROOT, 'packages')

interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Readonly<Record<string, unknown>>
  readonly bin?: Readonly<Record<string, string>>
}

/** Packages that have an entry. */
const names = readdirSync(PACKAGES).filter(name => existsSync(join(PACKAGES, name, 'src/index.ts')))

it('have one version', () => {
  const { version } = manifestOf('..')
  expect(names.map(name => [name, manifestOf(name).version])).toEqual(names.map(name => [name, version]))
})

describe.each(names)('the package in packages/%s', name => {
  const manifest = manifestOf(name)
  const entries = Object.keys(manifest.exports).map(entry => manifest.name + entry.slice(1))
  let folder: string
  let tarball: string

  beforeAll(async () => {
    const parent = await mkdtemp(join(tmpdir(), 'penstock-packages-'))
    folder = join(parent, 'empty')
    await mkdir(folder)
    tarball = await packPackage(name, parent)
    await writeFile(join(folder, 'package.json'), '{"name":"empty","private":true,"type":"module"}')
    const quiet = ['--prefer-offline', '--no-audit', '--no-fund']
    await run('npm', ['install', ...quiet, tarball], { cwd: folder, timeout: INSTALL_MS })
  }, INSTALL_MS)
  afterAll(() => rm(join(folder, '..'), { recursive: true, force: true }))

  it('is what publint and attw want', async () => {
    expect((await run(join(BIN, 'publint'), ['run', tarball, '--strict'])).stdout).toContain('All good!')
    const attw = ['--profile', 'esm-only', '--format', 'table-flipped', '--no-color', '--no-emoji', tarball]
    // It fails if an entry has a problem.
    expect((await run(join(BIN, 'attw'), attw)).stdout).toContain('OK (ESM)')
  })

  it('has no TypeScript but declarations, and no test', async () => {
    const files = await readdir(join(folder, 'node_modules', manifest.name), { recursive: true })
    expect(files.filter(file => /(?<!\.d)\.tsx?$|\.test\./.test(file))).toEqual([])
    expect(files).toContain('README.md')
  })

  it('is imported by each of its entries', async () => {
    const imports = `${entries.map(entry => `await import(${JSON.stringify(entry)})`).join('\n')}\nconsole.log('imported')`
    await writeFile(join(folder, 'imports.mjs'), imports)
    expect((await run(process.execPath, ['imports.mjs'], { cwd: folder })).stdout).toBe('imported\n')
  })

  it('has types for each of its entries', async () => {
    await writeFile(join(folder, 'types.ts'), entries.map((entry, i) => `export * as e${i} from '${entry}'`).join('\n'))
    const lib = ['--lib', 'es2024,dom', '--types', '', '--module', 'nodenext', '--skipLibCheck', '--strict', '--noEmit']
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...lib, 'types.ts'], { cwd: folder })
  })

  it.runIf(manifest.bin)('has commands that state how they are used', async () => {
    for (const command of Object.keys(manifest.bin ?? {})) {
      const ended = run(join(folder, 'node_modules/.bin', command), [], { cwd: folder })
      await expect(ended).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(`${command} `) })
    }
  })
})

function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(join(PACKAGES, name, 'package.json'), 'utf8'))
}
