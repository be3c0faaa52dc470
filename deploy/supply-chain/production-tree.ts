import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { MIB } from '../../schemas/units.ts'
import { CONSOLE_DEPENDENCIES } from '../docker/console-dependencies.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const versions = z.record(z.string(), z.string()).optional()

const packageSchema = z.looseObject({
  version: z.string().optional(),
  dependencies: versions,
  optionalDependencies: versions,
  peerDependencies: versions,
})

const lockSchema = z.looseObject({ packages: z.record(z.string(), packageSchema) })

const manifestSchema = z.looseObject({
  dependencies: versions,
  devDependencies: versions,
  optionalDependencies: versions,
})

/** The packages of production, in the form of package.json and package-lock.json. */
interface ProductionTree {
  readonly manifest: object
  readonly lock: z.infer<typeof lockSchema>
  /** Each package with its version, as `name@version`. */
  readonly packages: ReadonlySet<string>
}

/**
 * Returns package.json and its lock with what an image contains: the packages of the processes, and those of which the console is
 * bundled (`bundled`, most of which are development dependencies), with all that they need. Optional dependencies of package.json
 * are Node and the local servers of `npm start`; those of packages are native parts, which stay.
 */
export function productionTree(
  manifestText: string,
  lockText: string,
  bundled: readonly string[] = CONSOLE_DEPENDENCIES,
): ProductionTree {
  const produced = ({
    devDependencies,
    optionalDependencies: _,
    workspaces: __,
    ...rest
  }: z.infer<typeof manifestSchema>) => {
    const shipped = bundled.map(name => {
      const version = devDependencies?.[name] ?? rest.dependencies?.[name]
      if (version === undefined) throw new Error(`${name} is bundled, but package.json does not name it`)
      return [name, version] as const
    })
    return { ...rest, dependencies: { ...rest.dependencies, ...Object.fromEntries(shipped) } }
  }
  const manifest = produced(manifestSchema.parse(JSON.parse(manifestText)))
  const lock = lockSchema.parse(JSON.parse(lockText))
  const needed = pathsOf(lock, Object.keys(manifest.dependencies))
  const kept = Object.entries(lock.packages).filter(([path]) => path === '' || needed.has(path))
  const packages = Object.fromEntries(
    kept.map(([path, { dev: _, devOptional: __, ...entry }]) => [
      path,
      path === '' ? produced(manifestSchema.parse(entry)) : entry,
    ]),
  )
  const named = kept.flatMap(([path, { version }]) => (path === '' ? [] : [`${nameOf(path)}@${version}`]))
  return { manifest, lock: { ...lock, packages }, packages: new Set(named) }
}

/** Returns the paths in the lock of these packages and of all that they depend on. */
function pathsOf({ packages }: ProductionTree['lock'], names: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>()
  const add = (name: string, from: string): void => {
    const path = resolve(packages, name, from)
    // Optional packages, and peers that are optional, may be absent.
    if (path === undefined || found.has(path)) return
    found.add(path)
    const { dependencies, optionalDependencies, peerDependencies } = packages[path] ?? {}
    for (const next of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) add(next, path)
  }
  for (const name of names) add(name, '')
  return found
}

/** Finds a package as Node does: in the folder of the package that needs it, then in those above. */
function resolve(packages: ProductionTree['lock']['packages'], name: string, from: string): string | undefined {
  const path = `${from && `${from}/`}node_modules/${name}`
  if (path in packages) return path
  if (from === '') return undefined
  const above = from.lastIndexOf('/node_modules/')
  return resolve(packages, name, above < 0 ? '' : from.slice(0, above))
}

/** Returns the name of a package from its path in the lock. An alias has the name under which it is imported. */
function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

/** The output of npm. */
interface NpmRun {
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
      maxBuffer: 64 * MIB,
    })
    return { status, stdout: stdout ?? '', stderr: stderr || (error?.message ?? ''), tree }
  } finally {
    rmSync(parent, { recursive: true, force: true })
  }
}
