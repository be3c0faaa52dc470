import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ROOT, trackedFiles } from './prose.ts'

const CONTRACT = 'docs/contract.md'
const ROOMS = new Set([
  'schemas',
  'shared',
  'clickhouse',
  'letters',
  'ingest',
  'workers',
  'api',
  'cli',
  'console',
  'deploy',
  'bench',
  'test',
  'docs',
])

function anchorsOf(page: string): Set<string> {
  return new Set([...readFileSync(ROOT + page, 'utf8').matchAll(/<a id="([a-z-]+)"/g)].map(match => match[1] ?? ''))
}

function citations(): { file: string; anchor: string }[] {
  return trackedFiles()
    .filter(file => /\.(ts|mjs|md|sql|example)$/.test(file))
    .flatMap(file =>
      [...readFileSync(ROOT + file, 'utf8').matchAll(/contract\.md#(?!anchor)([a-z0-9-]+)/g)].map(match => ({
        file,
        anchor: match[1] ?? '',
      })),
    )
}

it('every citation of the contract names an anchor that it has', () => {
  const anchors = anchorsOf(CONTRACT)
  const cited = citations()
  expect(cited.length).toBeGreaterThan(20)
  expect(cited.filter(({ anchor }) => !anchors.has(anchor))).toEqual([])
})

it('no comment cites a document that is not in the repository', () => {
  const strangers = trackedFiles()
    .filter(file => /\.(ts|mjs|example)$/.test(file) && !file.startsWith('test/house/'))
    .flatMap(file =>
      [...readFileSync(ROOT + file, 'utf8').matchAll(/\b(?:CONTRACT|spec|contract) (?:section )?\d(?:\.\d+)?/g)].map(
        match => `${file}: ${match[0]}`,
      ),
    )
  expect(strangers).toEqual([])
})

it('every file and folder that a page names exists', () => {
  const files = trackedFiles()
  const exists = (path: string) => files.some(file => file === path || file.startsWith(path.replace(/\/?$/, '/')))
  const missing = files
    .filter(file => file.endsWith('.md') && file !== 'CHANGELOG.md' && file !== 'bench/RESULTS.md')
    .flatMap(page => {
      const named = [
        ...readFileSync(ROOT + page, 'utf8').matchAll(/`((?:[\w.-]+\/)+(?:[\w.-]+\.(?:ts|mjs|sql|example|md))?)`/g),
      ]
      return named
        .map(match => match[1] ?? '')
        .filter(path => ROOMS.has(path.split('/', 1)[0] ?? '') && !exists(path))
        .map(path => `${page}: ${path}`)
    })
  expect(missing).toEqual([])
})
