import { expect, it } from 'vitest'
import { readAllCode, unusedExports } from './code.ts'

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

it('every export is imported by another file', () => {
  const unused = unusedExports(readAllCode()).map(({ file, name }) => `${file} ${name}`)
  expect(unused.filter(pair => !EXCEPTIONS.includes(pair))).toEqual([])
  expect(EXCEPTIONS.filter(pair => !unused.includes(pair))).toEqual([])
})
