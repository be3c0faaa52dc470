import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const lockSchema = z.looseObject({
  packages: z.record(z.string(), z.looseObject({ version: z.string().optional(), dev: z.boolean().optional() })),
})

/** The packages of production, in the form of package.json and package-lock.json. */
export interface ProductionTree {
  readonly manifest: object
  readonly lock: z.infer<typeof lockSchema>
  /** Each package with its version, as `name@version`. */
  readonly packages: ReadonlySet<string>
}

/**
 * Returns package.json and its lock without the packages of development. `--omit dev` of npm 11 does not do the same: it leaves out
 * every package that a package of development needs too, which are half of them here.
 */
export function productionTree(manifestText: string, lockText: string): ProductionTree {
  const withoutDevelopment = ({ devDependencies: _, ...rest }: Record<string, unknown>) => rest
  const manifest = withoutDevelopment(z.looseObject({}).parse(JSON.parse(manifestText)))
  const lock = lockSchema.parse(JSON.parse(lockText))
  const kept = Object.entries(lock.packages).filter(([, { dev }]) => dev !== true)
  const packages = Object.fromEntries(
    kept.map(([path, entry]) => [path, path === '' ? withoutDevelopment(entry) : entry]),
  )
  const named = kept.flatMap(([path, { version }]) => (path === '' ? [] : [`${nameOf(path)}@${version}`]))
  return { manifest, lock: { ...lock, packages }, packages: new Set(named) }
}

/** Returns the name of a package from its path in the lock. An alias has the name under which it is imported. */
function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

/** The output of npm. */
export interface NpmRun {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs npm on the production tree of this checkout, without installing it. */
export function runNpmOnProduction(args: readonly string[]): NpmRun & { readonly tree: ProductionTree } {
  const read = (name: string) => readFileSync(join(ROOT, name), 'utf8')
  const tree = productionTree(read('package.json'), read('package-lock.json'))
  const parent = mkdtempSync(join(tmpdir(), 'penstock-supply-'))
  try {
    // npm names the tree for its directory.
    const cwd = join(parent, 'penstock')
    mkdirSync(cwd)
    writeFileSync(join(cwd, 'package.json'), JSON.stringify(tree.manifest))
    writeFileSync(join(cwd, 'package-lock.json'), JSON.stringify(tree.lock))
    const all = [...args, '--package-lock-only', '--fetch-retries=0', '--fetch-timeout=30000', '--loglevel=error']
    const cli = process.env.npm_execpath
    const [command, before] = cli?.endsWith('.js') ? [process.execPath, [cli]] : ['npm', []]
    const { status, stdout, stderr, error } = spawnSync(command, [...before, ...all], {
      cwd,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    })
    return { status, stdout: stdout ?? '', stderr: stderr || (error?.message ?? ''), tree }
  } finally {
    rmSync(parent, { recursive: true, force: true })
  }
}
