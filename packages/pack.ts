import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'

/**
 * Runs in the folder of a package before `npm pack`: writes dist/ with the entries and commands that the manifest names, as
 * JavaScript with its source maps and as declarations. Packages of npm stay imports, and code of schemas/ becomes part of the
 * entries.
 */
interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
  readonly bin?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const FOLDER = process.cwd()
const ROOT = join(import.meta.dirname, '..')
const DIST = join(FOLDER, 'dist')

const manifest = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8')) as Manifest
const entries = [...Object.values(manifest.exports), ...Object.values(manifest.bin ?? {})].map(target => {
  const file = typeof target === 'string' ? target : target.default
  return file.replace(/^\.\/dist\/(.*)\.js$/, 'src/$1.ts')
})
const external = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })
const isForBrowsers = manifest.dependencies?.['@rrweb/record'] !== undefined

rmSync(DIST, { recursive: true, force: true })
await build({
  absWorkingDir: FOLDER,
  entryPoints: entries,
  outdir: DIST,
  outbase: 'src',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: isForBrowsers ? 'browser' : 'node',
  target: isForBrowsers ? 'es2022' : 'node22',
  external: external.flatMap(name => [name, `${name}/*`]),
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning',
})
writeDeclarations()

/** Writes the declarations of the entries, which import nothing but each other. */
function writeDeclarations(): void {
  const folder = mkdtempSync(join(FOLDER, '.declarations-'))
  try {
    const config = join(folder, 'tsconfig.json')
    const compilerOptions = {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      // `npm run check:types` checks the types.
      noCheck: true,
      rootDir: ROOT,
      outDir: join(folder, 'out'),
    }
    const base = join(isForBrowsers ? FOLDER : ROOT, 'tsconfig.json')
    const files = entries.map(entry => join(FOLDER, entry))
    writeFileSync(config, JSON.stringify({ extends: base, compilerOptions, files, include: [] }))
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
    // npm prints the name of the package to stdout.
    const { status } = spawnSync(process.execPath, [compiler, '-p', config], { stdio: ['ignore', 2, 2] })
    if (status !== 0) throw new Error('the declarations could not be written')
    copyDeclarations(join(folder, 'out', FOLDER.slice(ROOT.length), 'src'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Copies the declarations of the entries and of what they import from their package. */
function copyDeclarations(source: string): void {
  const files = entries.map(entry => entry.replace(/^src\/(.*)\.ts$/, '$1.d.ts'))
  for (const file of files) {
    const text = readFileSync(join(source, file), 'utf8').replace(/(from '\.[\w./-]+)\.ts'/g, "$1.js'")
    mkdirSync(dirname(join(DIST, file)), { recursive: true })
    writeFileSync(join(DIST, file), text)
    for (const [, path = ''] of text.matchAll(/from '(\.[\w./-]+)\.js'/g)) {
      const imported = join(dirname(file), `${path}.d.ts`)
      if (!files.includes(imported)) files.push(imported)
    }
  }
}
