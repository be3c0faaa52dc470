import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { PRODUCT } from './code.ts'
import { ROOT, trackedFiles } from './prose.ts'

const ROOMS = new Set([...PRODUCT, 'deploy', 'bench', 'test', 'docs'])

/** Returns what a link can name in a page: its explicit anchors, and its headings as GitHub derives their ids. */
function anchorsOf(page: string): Set<string> {
  const text = readFileSync(ROOT + page, 'utf8')
  const explicit = [...text.matchAll(/<a id="([a-z-]+)"/g)].map(match => match[1] ?? '')
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(match =>
    (match[1] ?? '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
  return new Set([...explicit, ...headings])
}

function namesAnAnchor(page: string, anchor: string): boolean {
  return existsSync(ROOT + page) && (anchor === '' || anchorsOf(page).has(anchor))
}

it('every citation of a page in code and comments names an anchor that it has', () => {
  const cited = trackedFiles()
    .filter(file => /\.(tsx?|mjs|md|example)$/.test(file))
    .flatMap(file =>
      [...readFileSync(ROOT + file, 'utf8').matchAll(/\b(docs\/[\w/-]+\.md)#([a-z0-9-]+)/g)].map(
        ([, page = '', anchor = '']) => ({ file, page, anchor }),
      ),
    )
  expect(cited.length).toBeGreaterThan(20)
  expect(cited.filter(({ page, anchor }) => !namesAnAnchor(page, anchor))).toEqual([])
})

it('every link between pages leads to a file and an anchor that exist', () => {
  const broken = trackedFiles()
    .filter(file => file.endsWith('.md'))
    .flatMap(file =>
      [...readFileSync(ROOT + file, 'utf8').matchAll(/\]\((?!https?:|mailto:)([^)\s#]*)#?([^)\s]*)\)/g)]
        .map(([link, path = '', anchor = '']) => ({
          link,
          page: path === '' ? file : join(dirname(file), path),
          anchor,
        }))
        .filter(({ page, anchor }) => !namesAnAnchor(page, page.endsWith('.md') ? anchor : ''))
        .map(({ link }) => `${file}: ${link}`),
    )
  expect(broken).toEqual([])
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
        ...readFileSync(ROOT + page, 'utf8').matchAll(/`((?:[\w.-]+\/)+(?:[\w.-]+\.(?:ts|mjs|sql|lua|example|md))?)`/g),
      ]
      return named
        .map(match => match[1] ?? '')
        .filter(path => ROOMS.has(path.split('/', 1)[0] ?? '') && !exists(path))
        .map(path => `${page}: ${path}`)
    })
  expect(missing).toEqual([])
})
