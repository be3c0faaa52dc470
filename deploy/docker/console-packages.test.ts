import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

const dockerfile = readFileSync(join(import.meta.dirname, 'Dockerfile'), 'utf8')

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-console-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

it.each(['package.json', 'package-lock.json'])('the image builds the console with what it imports: %s', file => {
  for (const name of ['package.json', 'package-lock.json']) cpSync(join(ROOT, name), join(directory, name))
  const run = spawnSync(process.execPath, [join(import.meta.dirname, 'console-packages.ts')], { cwd: directory })
  expect(run.status, run.stderr.toString()).toBe(0)
  const content = JSON.parse(readFileSync(join(directory, file), 'utf8'))
  expect(Object.keys((content.packages?.[''] ?? content).dependencies).sort()).toEqual(importedPackages())
})

it('the image builds the console with the files that it imports from elsewhere', () => {
  const outside = consoleSources().flatMap(file =>
    importsOf(file, /from '(\.[^']*)'/g)
      .map(specifier => join(dirname(file), specifier))
      .filter(path => !path.startsWith('console/')),
  )
  const copied = [...dockerfile.matchAll(/^COPY ((?:schemas|shared)\/\S+) \S+$/gm)].map(([, path]) => path)
  expect([...new Set(outside)].sort()).toEqual(copied.sort())
})

/** Scripts of Node, and the examples that the console shows as text. */
const NOT_BUILT = ['client-source.ts', 'write-client.ts', 'snippets.ts']

/** Returns the packages that the sources of the console and its build import. */
function importedPackages(): string[] {
  const specifiers = consoleSources().flatMap(file => importsOf(file, /(?:from |import\(|^import )'([^'.][^']*)'/gm))
  const packages = specifiers
    .filter(specifier => !specifier.startsWith('node:'))
    .map(specifier => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'))
  return [...new Set(packages)].sort()
}

/** Returns the files of which the console is built. */
function consoleSources(): string[] {
  const isBuilt = (file: string) => !file.endsWith('.test.ts') && !NOT_BUILT.some(name => file.endsWith(name))
  return globSync('console/**/*.{ts,tsx}', { cwd: ROOT }).filter(isBuilt)
}

function importsOf(file: string, pattern: RegExp): string[] {
  return [...readFileSync(join(ROOT, file), 'utf8').matchAll(pattern)].map(([, specifier = '']) => specifier)
}
