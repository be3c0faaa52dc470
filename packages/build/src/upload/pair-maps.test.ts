import { describe, expect, it } from 'vitest'
import type { BuildFile } from './find-build-files.ts'
import { chunkUrlOf, pairMaps } from './pair-maps.ts'
import type { Bundle } from './read-bundle.ts'

const file = (path: string): BuildFile => ({
  path,
  absolutePath: `/build/${path}`,
  size: 10,
  urlPath: path,
})

/** A bundle as `[path, named map, debug id]`. */
type Script = readonly [path: string, named?: string | undefined, debugId?: string]

async function pair(
  scripts: readonly Script[],
  others: readonly string[],
  ids: Record<string, string> = {},
  urlPrefix = '~/',
) {
  const bundles = scripts.map(
    ([path, named, debugId]): Bundle => ({
      file: file(path),
      hasInlineMap: named === 'data:',
      isBytecode: false,
      statement: undefined,
      insertAt: 0,
      before: Buffer.alloc(0),
      ...(named !== undefined && named !== 'data:' && { sourceMappingUrl: named }),
      ...(debugId !== undefined && { debugId }),
    }),
  )
  const files = {
    bundles: [],
    others: new Map(others.map(path => [path, file(path)])),
    skippedLinks: 0,
    unreadable: [],
  }
  const found = await pairMaps({ debugIdOf: async ({ path }) => ids[path], urlPrefix }, files, bundles)
  return {
    maps: Object.fromEntries(found.maps.map(({ path, bundles }) => [path, bundles.map(({ file }) => file.path)])),
    missing: found.missing.map(({ bundle, named }) => [bundle.file.path, named]),
    orphans: found.orphans.map(({ path }) => path),
    remote: found.remote.map(({ file }) => file.path),
  }
}

const nothing = { maps: {}, missing: [], orphans: [], remote: [] }

describe('the map of a bundle', () => {
  it.each([
    ['relative to the bundle', 'js/a.js', 'maps/x.map', 'js/maps/x.map'],
    ['in the parent directory', 'js/a.js', '../maps/x.map', 'maps/x.map'],
    ['with a query, a fragment and percent signs', 'a.js', 'x%20y.map?v=1#z', 'x y.map'],
    ['from the root of the site', 'js/a.js', '/js/x.map', 'js/x.map'],
    ['not called .map', 'a.js', 'a.json', 'a.json'],
  ])('is the one that it names, %s', async (_name, bundle, named, map) => {
    expect(await pair([[bundle, named]], [map, `${bundle}.map`])).toMatchObject({ maps: { [map]: [bundle] } })
  })

  it('of React Native is the one beside it, else the one that Hermes has written', async () => {
    const bundle = 'index.android.bundle'
    expect(await pair([[bundle], [`${bundle}.hbc`]], [`${bundle}.hbc.map`])).toMatchObject({
      maps: { [`${bundle}.hbc.map`]: [bundle, `${bundle}.hbc`] },
    })
    expect(await pair([[bundle]], [`${bundle}.map`, `${bundle}.hbc.map`])).toMatchObject({
      maps: { [`${bundle}.map`]: [bundle] },
    })
  })

  it('is resolved against the URL prefix when it is named by an absolute path or URL', async () => {
    const maps = { 'js/x.map': ['js/a.js'] }
    for (const prefix of ['~/static/', '/static/', 'https://cdn.example/static/']) {
      expect(await pair([['js/a.js', '/static/js/x.map']], ['js/x.map'], {}, prefix)).toEqual({ ...nothing, maps })
    }
    const whole = 'https://cdn.example/static/js/x.map'
    expect(await pair([['js/a.js', whole]], ['js/x.map'], {}, 'https://cdn.example/static/')).toEqual({
      ...nothing,
      maps,
    })
  })

  it('is the one beside it when it names none or a missing one', async () => {
    const maps = { 'a.js.map': ['a.js'] }
    expect(await pair([['a.js']], ['a.js.map'])).toEqual({ ...nothing, maps })
    expect(await pair([['a.js', 'gone.map']], ['a.js.map'])).toEqual({ ...nothing, maps })
    expect(await pair([['a.js', 'https://elsewhere/a.map']], ['a.js.map'])).toEqual({ ...nothing, maps })
  })

  it('is the one with the same debug id when neither exists', async () => {
    const found = await pair(
      [
        ['a.js', 'gone.map', 'id-1'],
        ['b.js', undefined, 'id-2'],
      ],
      ['x.map', 'y.map'],
      { 'x.map': 'id-2', 'y.map': 'id-1' },
    )
    expect(found).toEqual({ ...nothing, maps: { 'x.map': ['b.js'], 'y.map': ['a.js'] } })
  })

  it('is the inline map if there is one, under a path that no file has', async () => {
    expect(
      await pair(
        [
          ['a.js', 'data:'],
          ['b.js', 'data:'],
        ],
        ['b.js.map'],
      ),
    ).toEqual({
      ...nothing,
      maps: { 'a.js.map': ['a.js'], 'b.js.inline.map': ['b.js'] },
      orphans: ['b.js.map'],
    })
  })

  it('may be shared with another bundle', async () => {
    expect(
      await pair(
        [
          ['a.js', 'x.map'],
          ['b.js', 'x.map'],
        ],
        ['x.map'],
      ),
    ).toEqual({ ...nothing, maps: { 'x.map': ['a.js', 'b.js'] } })
  })

  it('is reported as missing when it does not exist, and is never looked for outside the build', async () => {
    for (const named of ['gone.map', '../../etc/passwd', '/etc/passwd', '..', '%']) {
      expect(await pair([['a.js', named]], [])).toEqual({ ...nothing, missing: [['a.js', named]] })
    }
    expect(await pair([['a.js', 'https://elsewhere/a.map'], ['b.js', '//cdn/b.map'], ['c.js']], [])).toEqual({
      ...nothing,
      remote: ['a.js', 'b.js'],
    })
  })
})

it('a map without a bundle is an orphan unless it has a debug id; maps of style sheets and types are ignored', async () => {
  const others = ['x.map', 'y.map', 'a.css', 'a.css.map', 'b.css.map', 'c.d.ts.map', 'data.json']
  expect(await pair([], others, { 'y.map': 'id-1' })).toEqual({ ...nothing, maps: { 'y.map': [] }, orphans: ['x.map'] })
})

it('the URL of a bundle is the prefix and its path, encoded like a URL', () => {
  expect(chunkUrlOf('~/', 'js/app-1.js')).toBe('~/js/app-1.js')
  expect(chunkUrlOf('https://x/', 'a b/[id]?#é%.js')).toBe('https://x/a%20b/[id]%3F%23%C3%A9%25.js')
})
