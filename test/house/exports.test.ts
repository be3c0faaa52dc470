import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, it } from 'vitest'
import { readAllCode, unusedExports } from './code.ts'
import { ROOT } from './prose.ts'

/** Exports that no other file imports, and why they are exports. The list only shrinks. */
const EXCEPTIONS = [
  // Loaded by the name of the file.
  ...[
    'decode',
    'alerts',
    'fairness',
    'freshness',
    'grpc',
    'ingest',
    'memory',
    'part-load',
    'pipeline',
    'replay',
    'scale',
    'services',
    'stored-reads/stored-reads',
    'sustained',
    'trace-read',
  ].map(file => `bench/scenarios/${file}.ts scenario`),
  // Names a module that it extends.
  'test/support/setup/global-setup.ts ProvidedContext',
]

it('every export is imported by another file', () => {
  const entries = publishedEntries()
  const all = unusedExports(readAllCode()).filter(({ file }) => !entries.has(file))
  const unused = all.map(({ file, name }) => `${file} ${name}`)
  expect(unused.filter(pair => !EXCEPTIONS.includes(pair))).toEqual([])
  expect(EXCEPTIONS.filter(pair => !unused.includes(pair))).toEqual([])
})

/** Returns the files whose exports are for those who install a package. */
function publishedEntries(): ReadonlySet<string> {
  const manifests = globSync('packages/*/package.json', { cwd: ROOT })
  const files = manifests.flatMap(manifest => {
    const { exports }: { exports: Record<string, { default: string }> } = JSON.parse(
      readFileSync(ROOT + manifest, 'utf8'),
    )
    return Object.values(exports).map(target =>
      target.default.replace(/^\.\/dist\/(.*)\.js$/, `${dirname(manifest)}/src/$1.ts`),
    )
  })
  return new Set(files)
}
