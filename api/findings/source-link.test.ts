import { expect, it } from 'vitest'
import { sourceLinks } from './source-link.ts'

const COMMIT = '4f2a9c1'
const linksOf = (repository: unknown, commit: string | null = COMMIT) =>
  sourceLinks({ commit, metadata: { repository } as Record<string, string> })

it.each([
  ['https://github.com/acme/shop', `https://github.com/acme/shop/blob/${COMMIT}/src/a.ts#L7`],
  ['https://github.com/acme/shop.git', `https://github.com/acme/shop/blob/${COMMIT}/src/a.ts#L7`],
  ['https://github.acme.test:8443/acme/shop/', `https://github.acme.test:8443/acme/shop/blob/${COMMIT}/src/a.ts#L7`],
  ['https://gitlab.com/acme/web/shop', `https://gitlab.com/acme/web/shop/-/blob/${COMMIT}/src/a.ts#L7`],
  ['https://bitbucket.org/acme/shop', `https://bitbucket.org/acme/shop/src/${COMMIT}/src/a.ts#lines-7`],
])('links to a line in %s', (repository, link) => {
  expect(linksOf(repository)?.('src/a.ts', 7)).toBe(link)
})

it.each([
  [undefined],
  [7],
  ['acme/shop'],
  ['http://github.com/acme/shop'],
  ['javascript://github.com/%0aalert(1)//x'],
  ['https://anna:secret@github.com/acme/shop'],
  ['https://github.com/acme/shop?a'],
  ['https://github.com/acme/shop#a'],
  ['https://github.com/acme'],
  ['https://mygithub.com/acme/shop'],
  ['https://sources.acme.test/acme/shop'],
  [`https://github.com/acme/${'x'.repeat(500)}`],
])('links nowhere for the repository %j', repository => {
  expect(linksOf(repository)).toBeUndefined()
})

it.each([[null], [''], ['main'], ['../../x'], ['abc']])('links nowhere for the commit %j', commit => {
  expect(linksOf('https://github.com/acme/shop', commit)).toBeUndefined()
})

it('encodes paths, and links to no path outside of the repository', () => {
  const link = linksOf('https://github.com/acme/shop')
  expect(link?.('app/[id]/a b#c?d.ts', 1)).toContain('/app/%5Bid%5D/a%20b%23c%3Fd.ts#L1')
  expect(link?.('a\ud800.ts', 1)).toContain('/a%EF%BF%BD.ts#L1')
  for (const path of ['', '/srv/a.ts', '../a.ts', 'a/../../b.ts', './a.ts', 'C:/a.ts', 'a//b.ts']) {
    expect(link?.(path, 1)).toBeUndefined()
  }
  expect(link?.('a.ts', 0)).toBeUndefined()
})
