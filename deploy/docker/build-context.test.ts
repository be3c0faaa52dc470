import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join, matchesGlob, posix } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

const kept = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
  .split('\n')
  .filter(line => line.startsWith('!'))
  .map(line => line.slice(1))

it('the image has each file that its processes import', () => {
  const starts = globSync(['{api,ingest,workers,cli}/main.ts', 'clickhouse/migrate/main.ts'], { cwd: ROOT })
  expect(starts).toHaveLength(5)
  const found = new Set(starts)
  for (const file of found) for (const imported of importsOf(file)) found.add(imported)
  expect(found.size).toBeGreaterThan(500)
  const missing = [...found].filter(file => !kept.some(path => matchesGlob(file, path) || file.startsWith(`${path}/`)))
  expect(missing).toEqual([])
})

/** Returns the files of this repository that a file imports when it runs. Imports of types alone are none. */
function importsOf(file: string): string[] {
  if (!file.endsWith('.ts')) return []
  const code = stripTypeScriptTypes(readFileSync(join(ROOT, file), 'utf8'))
  const specifiers = [...code.matchAll(/(?:from |import |import\()'(\.[^']*)'/g)].map(([, specifier = '']) => specifier)
  return specifiers.map(specifier => posix.join(posix.dirname(file), specifier))
}
