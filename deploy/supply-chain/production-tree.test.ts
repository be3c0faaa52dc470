import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { CONSOLE_DEPENDENCIES } from '../docker/console-dependencies.ts'
import { productionTree } from './production-tree.ts'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')

it('has every package of the processes and of the bundle of the console, and no other', () => {
  const { packages, manifest } = productionTree(read('package.json'), read('package-lock.json'))
  const names = [...packages].map(text => text.slice(0, text.lastIndexOf('@')))
  for (const name of ['pino', 'zod', 'ioredis', '@aws-sdk/client-s3', 'uWebSockets.js']) expect(names).toContain(name)
  for (const name of [...CONSOLE_DEPENDENCIES, '@preact/signals-core', '@rrweb/types']) expect(names).toContain(name)
  for (const name of ['vitest', 'vite', 'typescript']) expect(names).not.toContain(name)
  for (const name of ['@uwsjs/linux-x64-22', '@uwsjs/darwin-arm64-22']) expect(names).toContain(name)
  const local = Object.keys(JSON.parse(read('package.json')).optionalDependencies)
  expect(local).toContain('chdb')
  for (const name of [...local, 'workerd', '@chdb/lib-linux-x64-gnu']) expect(names).not.toContain(name)
  expect(manifest).not.toHaveProperty('devDependencies')
  expect(manifest).not.toHaveProperty('optionalDependencies')
})

it('keeps what a bundled package needs, in the version that it finds', () => {
  const manifest = { dependencies: {}, devDependencies: { ui: '1.0.0', tool: '1.0.0' } }
  const dev = { dev: true }
  const packages = {
    '': manifest,
    'node_modules/ui': { ...dev, version: '1.0.0', dependencies: { core: '2.0.0', shared: '1.0.0' } },
    'node_modules/ui/node_modules/core': { ...dev, version: '2.0.0', dependencies: { shared: '1.0.0' } },
    'node_modules/core': { ...dev, version: '1.0.0' },
    'node_modules/shared': { ...dev, version: '1.0.0', peerDependencies: { ui: '*', absent: '*' } },
    'node_modules/tool': { ...dev, version: '1.0.0', dependencies: { core: '1.0.0' } },
  }
  const tree = productionTree(JSON.stringify(manifest), JSON.stringify({ packages }), ['ui'])
  expect([...tree.packages].sort()).toEqual(['core@2.0.0', 'shared@1.0.0', 'ui@1.0.0'])
  expect(tree.manifest).toEqual({ dependencies: { ui: '1.0.0' } })
  expect(tree.lock.packages['node_modules/ui']).not.toHaveProperty('dev')
})

it('refuses a bundled package that package.json does not have', () => {
  const manifest = JSON.stringify({ devDependencies: {} })
  expect(() => productionTree(manifest, JSON.stringify({ packages: {} }), ['ui'])).toThrow('ui is bundled')
})
