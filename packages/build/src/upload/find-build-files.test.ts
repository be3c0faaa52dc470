import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findBuildFiles } from './find-build-files.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-build-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function put(...paths: string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), path)
  }
}

async function find(below: string) {
  const { bundles, others, skippedLinks } = await findBuildFiles([{ directory: join(directory, below) }])
  return { bundles: bundles.map(({ path }) => path), others: [...others.keys()], skippedLinks }
}

it('finds bundles and other files at every depth, sorted by path', async () => {
  const many = Array.from({ length: 70 }, (_, i) => `d/${'x/'.repeat(i % 5)}n${i}.js`)
  await put('b.mjs', 'a.cjs', 'c.JSX', 'a.cjs.map', 'd/e.css', ...many)
  const found = await find('.')
  expect(found).toEqual({
    bundles: ['a.cjs', 'b.mjs', 'c.JSX', ...many].sort(),
    others: ['a.cjs.map', 'd/e.css'],
    skippedLinks: 0,
  })
})

it('finds the bundles of React Native', async () => {
  await put('index.android.bundle', 'main.jsbundle', 'ota/index-1.hbc', 'index.android.bundle.hbc.map', 'bundle')
  expect((await find('.')).bundles).toEqual(['index.android.bundle', 'main.jsbundle', 'ota/index-1.hbc'])
})

it('names files and directories whose names are not UTF-8, and finds the others', async () => {
  await put('a.js', '\ufffd.js')
  const lost = (name: string) =>
    Buffer.concat([Buffer.from(`${directory}/caf`), Buffer.from([0xe9]), Buffer.from(name)])
  await writeFile(lost('.js'), '')
  await mkdir(lost(''))
  const { bundles, unreadable } = await findBuildFiles([{ directory }])
  expect(bundles.map(({ path }) => path)).toEqual(['a.js', '\ufffd.js'])
  expect([...unreadable].sort()).toEqual(['caf\ufffd', 'caf\ufffd.js'])
})

it('skips node_modules, unless the build is inside one', async () => {
  await put('dist/a.js', 'dist/node_modules/p/b.js', 'dist/x/node_modules/q/c.js', 'node_modules/p/dist/d.js')
  expect((await find('dist')).bundles).toEqual(['a.js'])
  expect((await find('node_modules/p/dist')).bundles).toEqual(['d.js'])
})

it('follows no symbolic links, neither out of the directory nor within it', async () => {
  await put('outside/secret.js', 'dist/a.js')
  await symlink(join(directory, 'outside'), join(directory, 'dist/out'))
  await symlink(join(directory, 'outside/secret.js'), join(directory, 'dist/b.js'))
  await symlink('.', join(directory, 'dist/loop'))
  await symlink('gone', join(directory, 'dist/c.js'))
  expect(await find('dist')).toEqual({ bundles: ['a.js'], others: [], skippedLinks: 4 })
  await symlink('dist', join(directory, 'current'))
  expect((await find('current')).bundles).toEqual(['a.js'])
})
