import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { discoverBuild } from './discover-build.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-build-'))
})
afterEach(() => rm(directory, { recursive: true }))

const MAP = '{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA"}'
const naming = (map: string) => `console.log(1)\n//# sourceMappingURL=${map}\n`

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), text)
  }
}

const discover = (change: { urlPrefix?: string; allowUnmapped?: boolean; inject?: boolean } = {}) =>
  discoverBuild({
    outputs: [{ directory }],
    urlPrefix: '~/',
    allowUnmapped: false,
    inject: true,
    abortSignal: new AbortController().signal,
    ...change,
  })

it('warns about compressed copies of bundles that will change, and only of those', async () => {
  const debugId = '//# debugId=11111111-1111-4111-8111-111111111111\n'
  await write({
    'a.js': naming('a.js.map'),
    'a.js.map': MAP,
    'a.js.br': '',
    'a.js.gz': '',
    'b.js': naming('b.js.map') + debugId,
    'b.js.map': MAP,
    'b.js.gz': '',
  })
  expect((await discover()).warnings).toEqual([
    'a.js.gz was compressed before its bundle got a debug id',
    'a.js.br was compressed before its bundle got a debug id',
  ])
  expect((await discover({ inject: false })).warnings).toEqual([])
})

it('reports how many symbolic links it skipped', async () => {
  await write({ 'a.js': naming('a.js.map'), 'a.js.map': MAP })
  await symlink(join(directory, 'a.js'), join(directory, 'b.js'))
  const { maps, warnings } = await discover()
  expect(maps.map(({ path }) => path)).toEqual(['a.js.map'])
  expect(warnings).toEqual(['symbolic links are not followed: 1 were skipped'])
})

it('fails for paths that the service does not accept, alone or with the URL prefix', async () => {
  const path = `${'d'.repeat(200)}/${'e'.repeat(200)}/a.js`
  await write({ [path]: naming('a.js.map'), [`${path}.map`]: MAP })
  expect((await discover()).failure).toBeUndefined()
  const long = await discover({ urlPrefix: `https://cdn.example/${'p'.repeat(1_640)}/` })
  expect(long.failure).toMatchObject({ result: 'pipeline_failed', message: expect.stringContaining(`${path}.map`) })
  await write({ 'b\\c.js': naming('b%5Cc.js.map'), 'b\\c.js.map': MAP })
  const odd = await discover()
  expect(odd.failure).toMatchObject({ result: 'pipeline_failed', message: expect.stringContaining('b\\c.js.map') })
})

it('fails if a map is missing, unless that is allowed, and if there is no map at all', async () => {
  await write({ 'a.js': naming('a.js.map'), 'b.js': naming('b.js.map'), 'b.js.map': MAP })
  const line = 'a.js names "a.js.map", which does not exist'
  expect(await discover()).toMatchObject({
    failure: { result: 'client_maps_unmapped', message: expect.stringContaining(line) },
    warnings: [],
  })
  const allowed = await discover({ allowUnmapped: true })
  expect([allowed.failure, allowed.warnings]).toEqual([undefined, [line]])
  await rm(join(directory, 'b.js.map'))
  expect(await discover()).toMatchObject({
    failure: {
      result: 'no_source_maps',
      message: expect.stringMatching(/of its 2 bundles: .*\n {2}a\.js\n {2}b\.js$/),
    },
  })
})

it('finds the maps of React Native', async () => {
  await write({ 'index.android.bundle': '', 'index.android.bundle.map': MAP, 'main.jsbundle': '', 'ota/a.hbc': '' })
  await write({ 'main.jsbundle.hbc.map': MAP, 'ota/a.hbc.map': MAP })
  const { maps, failure, warnings } = await discover()
  expect([failure, warnings]).toEqual([undefined, []])
  expect(maps.map(({ path, bundles }) => [path, bundles[0]?.file.path])).toEqual([
    ['index.android.bundle.map', 'index.android.bundle'],
    ['main.jsbundle.hbc.map', 'main.jsbundle'],
    ['ota/a.hbc.map', 'ota/a.hbc'],
  ])
})
