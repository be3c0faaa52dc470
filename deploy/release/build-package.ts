import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { BUILD_SCRIPT, isConsoleBuilt } from '../../console/build/freshness.ts'
import { headCommit, MANIFEST, ROOT } from './manifest.ts'

/**
 * Runs before `npm pack`: writes build/, which has the processes, the command line and `npm start` as JavaScript, because Node does
 * not run TypeScript in node_modules. Files keep their places, and code its lines.
 */
const BUILD = join(ROOT, 'build')
const ROOMS =
  '{alerts,api,cli,clickhouse,findings,ingest,letters,promql,schemas,shared,workers,deploy/local,packages/build/src/upload}/**/*.*'
const MORE = ['deploy/clickhouse/*.sh', 'console/build/freshness.ts', 'console/dist/**/*.*']
/** Served by the API. The other documents are left out. */
const RUNBOOK = 'docs/runbook.md'
const LEFT_OUT = ['**/*.test.ts', '**/*.d.ts', '**/*.md', 'schemas/otlp/proto/**']

// npm prints the name of the package to stdout, and the build of the console must not add to it.
if (!isConsoleBuilt() && spawnSync(process.execPath, [BUILD_SCRIPT], { stdio: ['ignore', 2, 2] }).status !== 0) {
  throw new Error('the console could not be built')
}
const files = new Set([...globSync([ROOMS, ...MORE], { cwd: ROOT, exclude: LEFT_OUT }), RUNBOOK])
rmSync(BUILD, { recursive: true, force: true })
for (const file of files) {
  const target = join(BUILD, file.replace(/\.ts$/, '.js'))
  mkdirSync(dirname(target), { recursive: true })
  if (/\.(ts|mjs)$/.test(file)) writeFileSync(target, javaScriptOf(file))
  else copyFileSync(join(ROOT, file), target)
}
const { name, version, type, optionalDependencies } = MANIFEST
const manifest = { name, version, type, optionalDependencies, gitHead: headCommit() }
writeFileSync(join(BUILD, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)

/** Strips the types, and names JavaScript wherever the code names a file of this package: in imports, and as an entry point. */
function javaScriptOf(file: string): string {
  const source = readFileSync(join(ROOT, file), 'utf8')
  const code = file.endsWith('.ts') ? stripTypeScriptTypes(source) : source
  return code.replace(/(['"])([\w./-]+)\.ts\1/g, (text, quote: string, path: string) => {
    const isRelative = path.startsWith('.')
    const named = `${isRelative ? join(dirname(file), path) : path}.ts`
    if (files.has(named)) return `${quote}${path}.js${quote}`
    if (isRelative && existsSync(join(ROOT, named))) throw new Error(`${file} names ${named}, which the package lacks`)
    return text
  })
}
