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

/** Files whose exports applications import: the entries of the packages that are published. */
const ENTRIES = new Set(
  globSync('packages/*/package.json', { cwd: ROOT }).flatMap(manifest => {
    const { exports } = JSON.parse(readFileSync(ROOT + manifest, 'utf8')) as {
      exports: Record<string, { default: string }>
    }
    const sourceOf = (target: string) => target.replace(/^\.\/dist\/(.*)\.js$/, 'src/$1.ts')
    return Object.values(exports).map(entry => `${dirname(manifest)}/${sourceOf(entry.default)}`)
  }),
)

it('every export is imported by another file', () => {
  const all = unusedExports(readAllCode()).filter(({ file }) => !ENTRIES.has(file))
  const unused = all.map(({ file, name }) => `${file} ${name}`)
  expect(unused.filter(pair => !EXCEPTIONS.includes(pair))).toEqual([])
  expect(EXCEPTIONS.filter(pair => !unused.includes(pair))).toEqual([])
})
