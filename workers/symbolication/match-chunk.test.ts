import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Chunk, createChunkMatcher } from './match-chunk.ts'

const chunk = (chunkUrl: string, path = ''): Chunk => ({ chunkUrl, path })

function matched(chunks: Chunk[], file: string): number {
  const found = createChunkMatcher(chunks).match(file)
  return found === undefined ? -1 : chunks.indexOf(found)
}

describe('the script that a frame names', () => {
  it('is the one of the same address, without query and fragment', () => {
    const chunks = [chunk('https://a.test/x.js'), chunk('https://b.test/x.js')]
    expect(matched(chunks, 'https://b.test/x.js?v=1#top')).toBe(1)
    expect(matched([chunk('https://a.test/x.js?v=2')], 'https://a.test/x.js')).toBe(0)
  })

  it('is the one of the same path with any host', () => {
    for (const url of ['https://cdn.test/assets/app.js', '/assets/app.js', '~/assets/app.js', 'app:///assets/app.js']) {
      expect(matched([chunk(url)], 'http://localhost:3000/assets/app.js')).toBe(0)
      expect(matched([chunk(url)], 'http://localhost:3000/assets/other.js')).toBe(-1)
    }
    expect(matched([chunk('https://cdn.test/app/(shop)/p.js')], 'https://x.test/app/%28shop%29/p.js')).toBe(0)
  })

  it.each([
    ['app/@modal/(group)/page.js', 'app/%40modal/%28group%29/page.js'],
    ['app/%40modal/page.js', 'app/@modal/page.js'],
    ['app/[id]/a,b$c+d.js', 'app/%5Bid%5D/a%2Cb%24c%2Bd.js'],
    ['größe/café.js', 'gr%C3%B6%C3%9Fe/caf%C3%A9.js'],
    ['100%/a.js', '100%/a.js'],
    ['%zz/@x.js', '%zz/%40x.js'],
    ['a%2Fb.js', 'a%2fb.js'],
  ])('is %s for %s, by address and by the path of its map', (own, sent) => {
    expect(matched([chunk(`https://cdn.test/${own}`)], `https://cdn.test/${sent}`)).toBe(0)
    expect(matched([chunk('', `${own}.map`)], `https://cdn.test/${sent}`)).toBe(0)
  })

  it('is not one of other segments: an encoded slash separates nothing', () => {
    expect(matched([chunk('~/x/a/b.js')], 'https://cdn.test/x/a%2Fb.js')).toBe(-1)
    expect(matched([chunk('', 'b.js.map')], 'https://cdn.test/x/a%2Fb.js')).toBe(-1)
  })

  it('is the bytecode that React Native loads under the name of its bundle, unless the bundle has a map', () => {
    const chunks = [chunk('~/index.android.bundle.hbc', 'index.android.bundle.hbc.map')]
    for (const folder of ['', '/data/user/0/com.shop/files/']) {
      expect(matched(chunks, `${folder}index.android.bundle`)).toBe(0)
    }
    expect(matched([...chunks, chunk('', 'index.android.bundle.map')], 'index.android.bundle')).toBe(1)
  })

  it('is the longest that ends the path of the frame, at a segment', () => {
    const chunks = [chunk('', 'server.js.map'), chunk('', 'dist/server.js.map'), chunk('', 'st/server.js.map')]
    expect(matched(chunks, '/srv/app/dist/server.js')).toBe(1)
    expect(matched(chunks, 'file:///srv/app/dist/server.js')).toBe(1)
    expect(matched(chunks, 'C:\\app\\dist\\server.js')).toBe(1)
    expect(matched(chunks, '/srv/app/lib/server.js')).toBe(0)
    expect(matched(chunks, '/srv/app/lib/my-server.js')).toBe(-1)
    expect(matched([chunk('', './dist/server.js.map')], '/srv/dist/server.js')).toBe(0)
  })

  it('is none of the build for a package, unless the build has that package', () => {
    const chunks = [chunk('', 'index.js.map'), chunk('', 'node_modules/left/index.js.map')]
    expect(matched(chunks, '/srv/node_modules/express/index.js')).toBe(-1)
    expect(matched(chunks, '/srv/node_modules/left/index.js')).toBe(1)
    expect(matched(chunks, '/srv/index.js')).toBe(0)
  })

  it('is not found for an empty file', () => {
    for (const file of ['', '/', '<anonymous>', 'native', 'https://a.test', '%', 'node:fs']) {
      expect(matched([chunk('', 'app.js.map'), chunk('https://a.test/app.js')], file)).toBe(-1)
    }
  })

  it('follows the rules for any scripts and frames', () => {
    const segment = fc.constantFrom('a', 'b', 'app.js', 'node_modules', 'x.js')
    const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map(parts => parts.join('/'))
    const host = fc.constantFrom('https://one.test/', 'https://two.test/', '/', '~/')
    const anyChunk = fc.record({
      chunkUrl: fc.oneof(
        fc.constant(''),
        fc.tuple(host, path).map(([from, at]) => from + at),
      ),
      path: path.map(at => `${at}.map`),
    })
    const file = fc.tuple(fc.constantFrom('https://one.test/', '/', 'file:///'), path).map(([from, at]) => from + at)
    fc.assert(
      fc.property(fc.array(anyChunk, { maxLength: 6 }), file, (chunks, at) => {
        expect(matched(chunks, at)).toBe(chunks.indexOf(byTheRules(chunks, at) as Chunk))
      }),
      { numRuns: 2_000 },
    )
  })
})

/** The rules as they are written down, tried one after the other on every script. */
function byTheRules(chunks: Chunk[], file: string): Chunk | undefined {
  const pathOf = (address: string) => address.replace(/^(https?:\/\/[^/]*|file:\/\/|~)/, '')
  const own = pathOf(file).slice(1)
  const named = chunks.filter(({ chunkUrl }) => chunkUrl !== '')
  const keys: [string, Chunk][] = [
    ...named.map((one): [string, Chunk] => [pathOf(one.chunkUrl).slice(1), one]),
    ...chunks.map((one): [string, Chunk] => [one.path.slice(0, -4), one]),
  ]
  const packages = own.lastIndexOf('node_modules/')
  const endings = keys
    .filter(([key]) => own === key || own.endsWith(`/${key}`))
    .filter(([key]) => packages < 0 || own.length - key.length <= packages)
  const longest = Math.max(...endings.map(([key]) => key.length))
  return (
    named.find(({ chunkUrl }) => chunkUrl === file) ??
    named.find(({ chunkUrl }) => pathOf(chunkUrl) === pathOf(file)) ??
    endings.find(([key]) => key.length === longest)?.[1]
  )
}
